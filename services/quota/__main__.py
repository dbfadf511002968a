"""The quota service's process: settings, leases, servicer, serve."""

from datetime import timedelta

from lintello.quota.v1.quota_pb2_grpc import add_QuotaServiceServicer_to_server

from kit.identity import Verifier
from kit.serve import Service, run, serve
from kit.settings import load
from services.quota.errors import ERRORS
from services.quota.leases import Leases
from services.quota.servicer import ACCESS, RPC_SERVICE, QuotaServicer
from services.quota.settings import QuotaSettings


async def main() -> None:
    """Serve until stopped."""
    settings = load(QuotaSettings)
    leases = Leases(
        settings.redis_url.get_secret_value(),
        settings.max_thinks_concurrent,
        timedelta(seconds=settings.lease_seconds),
    )
    servicer = QuotaServicer(leases)
    service = Service(
        name="quota",
        address=settings.quota_address,
        rpc_services=(RPC_SERVICE,),
        add=lambda server: add_QuotaServiceServicer_to_server(servicer, server),
        access=ACCESS,
        errors=ERRORS,
        verifier=Verifier(settings.internal_public_keys, audience="quota"),
        drain_seconds=settings.drain_seconds,
    )
    try:
        await serve(service)
    finally:
        await leases.close()


if __name__ == "__main__":
    run("quota", main)
