"""The HTTP server: listens, and stops within the drain time even while streams are open."""

import asyncio
import logging
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI

from gateway.settings import GatewaySettings
from kit.settings import BadSetting

FAREWELL_SHARE = 0.8
"""The share of the drain time after which open streams are told to end; the rest is for saying so."""


class Server(uvicorn.Server):
    """uvicorn, stopped by SIGTERM or SIGINT with exit code 0."""

    def __init__(self, app: FastAPI, settings: GatewaySettings) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http="httptools",
                ws="none",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_graceful_shutdown=max(1, round(settings.drain_seconds)),
            )
        )
        self._closing: asyncio.Event = app.state.closing
        self._drain_seconds = settings.drain_seconds

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop at a signal, without raising it again afterwards as uvicorn does."""
        loop = asyncio.get_running_loop()
        signals = (signal.SIGTERM, signal.SIGINT)
        for number in signals:
            loop.add_signal_handler(number, self._stop)
        try:
            yield
        finally:
            for number in signals:
                loop.remove_signal_handler(number)

    def _stop(self) -> None:
        self.should_exit = True
        asyncio.get_running_loop().call_later(self._drain_seconds * FAREWELL_SHARE, self._closing.set)


def listen(settings: GatewaySettings) -> socket.socket:
    """The socket to serve at. Raises BadSetting when the address can't be listened at."""
    host, port = settings.gateway_host, settings.gateway_port
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
    except OSError:
        raise BadSetting(f"LINTELLO_GATEWAY_HOST: {host} isn't an address of this machine") from None
    listener = socket.socket(family)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError:
        listener.close()
        raise BadSetting(f"LINTELLO_GATEWAY_PORT: can't listen at {host}:{port}") from None
    return listener


def keep_text_out_of_logs() -> None:
    """Logs of the HTTP server say where it failed by our own record of the fault, never by an exception's text."""
    logging.getLogger("uvicorn.error").addFilter(_without_exception)


def _without_exception(record: logging.LogRecord) -> bool:
    record.exc_info = None
    record.exc_text = None
    return True
