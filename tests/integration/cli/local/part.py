"""A part of a stack for the supervision tests: `part.py <role>`, listening where its environment says."""

import http.server
import os
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path


class Ready(http.server.BaseHTTPRequestHandler):
    """Answers 200 to everything."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


class Server(http.server.ThreadingHTTPServer):
    """Refuses a port that is taken, as the real gateway does."""

    allow_reuse_address = True


def serve_http(port: int) -> None:
    """Serve until a signal."""
    Server(("127.0.0.1", port), Ready).serve_forever()


def serve_grpc(address: str) -> None:
    """Serve `grpc.health.v1` until SIGTERM."""
    import grpc
    from grpc_health.v1 import health, health_pb2, health_pb2_grpc

    server = grpc.server(ThreadPoolExecutor(2), options=[("grpc.so_reuseport", 0)])
    servicer = health.HealthServicer()
    servicer.set("", health_pb2.HealthCheckResponse.SERVING)
    health_pb2_grpc.add_HealthServicer_to_server(servicer, server)
    server.add_insecure_port(address)
    server.start()
    signal.pause()


def keep_diary(name: str, diary: Path) -> None:
    """When told to end, write so, take half a second for it, and write that it is over."""

    def write(what: str) -> None:
        with diary.open("a") as lines:
            lines.write(f"{name} {what}\n")

    def end(*_: object) -> None:
        write("told")
        time.sleep(0.5)
        write("gone")
        os._exit(0)

    signal.signal(signal.SIGTERM, end)


def main() -> None:
    """Play one role."""
    role = sys.argv[1]
    if role == "diary":
        role = sys.argv[2]
        keep_diary(role, Path(sys.argv[3]))
    if role == "migrate":
        print("migrated")
    elif role == "bad":
        print("LINTELLO_LOCALE: 'xx' is not one of fr, en")
        sys.exit(2)
    elif role == "flood":
        print("x" * 200_000 + "\nend")
    elif role == "sleep":
        print("asleep", flush=True)
        time.sleep(600)
    elif role == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        subprocess.Popen([sys.executable, __file__, "sleep"])
        serve_http(int(os.environ["LINTELLO_GATEWAY_PORT"]))
    elif role == "robbed" and not Path(sys.argv[2]).exists():
        # The first time, another program has taken the port just before.
        Path(sys.argv[2]).touch()
        thief = socket.create_server(("127.0.0.1", int(os.environ["LINTELLO_GATEWAY_PORT"])))
        subprocess.Popen(
            [sys.executable, __file__, "sleep"], pass_fds=[thief.fileno()], start_new_session=True, stdout=sys.stderr
        )
        sys.exit(1)
    elif role in ("gateway", "robbed"):
        serve_http(int(os.environ["LINTELLO_GATEWAY_PORT"]))
    elif role == "trial":
        serve_http(int(sys.argv[sys.argv.index("--port") + 1]))
    elif role == "count":
        # Dies at once each time, leaving one byte per life.
        with Path(sys.argv[2]).open("a") as lives:
            lives.write("x")
        sys.exit(1)
    else:
        serve_grpc(os.environ[f"LINTELLO_{role.upper()}_ADDRESS"])


if __name__ == "__main__":
    main()
