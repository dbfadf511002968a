"""The gateway's process: HTTP in front, gRPC behind."""

from gateway.app import create_app
from gateway.server import Server, keep_text_out_of_logs, listen
from gateway.settings import GatewaySettings
from kit import telemetry
from kit.serve import run
from kit.settings import load


async def main() -> None:
    """Wire it together and serve until SIGTERM."""
    settings = load(GatewaySettings)
    app = create_app(settings)
    listener = listen(settings)
    keep_text_out_of_logs()
    telemetry.log.info("serving", address=f"{settings.gateway_host}:{settings.gateway_port}", auth=settings.auth_mode)
    await Server(app, settings).serve(sockets=[listener])
    telemetry.log.info("stopped")


if __name__ == "__main__":
    run("gateway", main)
