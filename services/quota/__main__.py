"""The quota service's process: settings, leases, books, servicer, serve."""

from datetime import timedelta

from lintello.quota.v1.quota_pb2_grpc import add_QuotaServiceServicer_to_server
from prometheus_client import CollectorRegistry

from kit import telemetry
from kit.database import Database
from kit.identity import Verifier
from kit.serve import Service, run, serve
from kit.settings import load
from services.quota.errors import ERRORS, UsageUnavailable
from services.quota.leases import Leases
from services.quota.metrics import Slots
from services.quota.servicer import ACCESS, RPC_SERVICE, QuotaServicer
from services.quota.settings import QuotaSettings
from services.quota.usage import UsageLog

CONNECTIONS = 2
"""To PostgreSQL, and as many more under load: a row takes it about a millisecond."""


async def main() -> None:
    """Serve until stopped."""
    settings = load(QuotaSettings)
    leases = Leases(
        settings.redis_url.get_secret_value(),
        settings.max_thinks_concurrent,
        timedelta(seconds=settings.lease_seconds),
    )
    database = Database(settings.database_url.get_secret_value(), pool_size=CONNECTIONS)
    usage, registry = UsageLog(database), CollectorRegistry()
    Slots(leases, registry)
    servicer = QuotaServicer(leases, usage)
    service = Service(
        name="quota",
        address=settings.quota_address,
        rpc_services=(RPC_SERVICE,),
        add=lambda server: add_QuotaServiceServicer_to_server(servicer, server),
        access=ACCESS,
        errors=ERRORS,
        verifier=Verifier(settings.internal_public_keys, audience="quota"),
        drain_seconds=settings.drain_seconds,
        metrics_port=settings.metrics_port,
        registry=registry,
    )
    try:
        try:
            await usage.check()
        except UsageUnavailable:
            # Leases don't need it, and who records usage tries again.
            telemetry.log.warning("serving_without_database")
        await serve(service)
    finally:
        await leases.close()
        await database.close()


if __name__ == "__main__":
    run("quota", main)
