"""What a model call lets out and whom it trusts: the key, the logs, certificates, redirects and proxies."""

import datetime
import ssl
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import structlog
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from kit.model import ChatModel, ChatRequest, Message, ModelError, ModelErrorReason
from tests.servers.raw import RawServer, completion, raw_server, response

KEY = "sk-CANARY-key"
REQUEST = ChatRequest("small", [Message("user", "CANARY-question")])
FINE = completion("Bonjour", usage={"prompt_tokens": 3, "completion_tokens": 2})


async def at_once(_: float) -> None:
    """A wait that takes no time."""


@pytest.fixture
async def server() -> AsyncGenerator[RawServer, None]:
    async with raw_server() as raw:
        yield raw


@pytest.fixture
async def model(server: RawServer) -> AsyncGenerator[ChatModel, None]:
    caller = ChatModel(server.base_url, KEY, sleep=at_once)
    yield caller
    await caller.aclose()


async def test_a_certificate_nobody_vouches_for_is_unavailable(tmp_path: Path) -> None:
    async with raw_server(_self_signed(tmp_path)) as server:
        server.play(FINE)
        model = ChatModel(server.base_url, KEY, sleep=at_once)
        with pytest.raises(ModelError) as failure:
            await model.chat(REQUEST)
        await model.aclose()
        error = failure.value
        assert (error.reason, error.attempts) == (ModelErrorReason.UNAVAILABLE, 3)
        assert "Certificate" in str(error)
        assert server.requests == []


async def test_a_redirect_is_not_followed(server: RawServer, model: ChatModel) -> None:
    async with raw_server() as elsewhere:
        elsewhere.play(FINE)
        server.play(response(b"", "307 Temporary Redirect", location=f"{elsewhere.base_url}/chat/completions"))
        with pytest.raises(ModelError) as failure:
            await model.chat(REQUEST)
        error = failure.value
        assert (error.reason, error.status, elsewhere.connections) == (ModelErrorReason.REFUSED, 307, 0)


async def test_the_key_travels_in_one_header_only(server: RawServer, model: ChatModel) -> None:
    server.play(FINE)
    await model.chat(REQUEST)
    (request,) = server.requests
    assert [name for name, value in request.headers.items() if KEY in value] == ["authorization"]
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert KEY not in request.line + request.body.decode() + repr(model)


async def test_no_key_is_no_header(server: RawServer) -> None:
    server.play(FINE)
    model = ChatModel(server.base_url, None)
    await model.chat(REQUEST)
    await model.aclose()
    assert "authorization" not in server.requests[0].headers


async def test_logs_hold_no_content_and_no_key(server: RawServer, model: ChatModel) -> None:
    server.play(response(b'{"error": "CANARY-answer"}', "500 CANARY-answer"), completion("CANARY-answer"))
    with structlog.testing.capture_logs() as logs:
        await model.chat(REQUEST)
    assert [(line["model"], line["attempt"], line["status"]) for line in logs] == [("small", 1, 500), ("small", 2, 200)]
    assert "CANARY" not in repr(logs)


async def test_the_environments_proxy_is_not_used_on_this_machine(
    server: RawServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with raw_server() as proxy:
        monkeypatch.setenv("http_proxy", proxy.base_url)
        monkeypatch.setenv("no_proxy", "")
        server.play(FINE)
        model = ChatModel(server.base_url, KEY)
        await model.chat(REQUEST)
        await model.aclose()
        assert proxy.connections == 0


async def test_the_environments_proxy_is_used_for_other_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    async with raw_server() as proxy:
        monkeypatch.setenv("http_proxy", proxy.base_url.removesuffix("/v1"))
        monkeypatch.setenv("no_proxy", "")
        proxy.play(FINE)
        model = ChatModel("http://model.invalid/v1", KEY)
        await model.chat(REQUEST)
        await model.aclose()
        assert proxy.requests[0].line == "POST http://model.invalid/v1/chat/completions HTTP/1.1"


@pytest.mark.parametrize(
    "base_url", ["", "model", "ftp://host/v1", "http://", "http://user:CANARY@host/v1", "http://host:99999999/v1"]
)
def test_a_base_url_that_cannot_serve_is_refused(base_url: str) -> None:
    with pytest.raises(ValueError) as failure:
        ChatModel(base_url, KEY)
    assert "CANARY" not in str(failure.value)


@pytest.mark.parametrize("key", ["CANARY\n", "CANARY\r\nX: y", "CANARYé"])
def test_a_key_that_no_header_can_carry_is_refused(key: str) -> None:
    with pytest.raises(ValueError) as failure:
        ChatModel("http://127.0.0.1/v1", key)
    assert "CANARY" not in str(failure.value)


def _self_signed(folder: Path) -> ssl.SSLContext:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    plain = serialization.NoEncryption()
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain)
    path = folder / "server.pem"
    path.write_bytes(secret + certificate.public_bytes(pem))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    return context
