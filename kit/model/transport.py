"""The HTTP client below a chat model: httpx's interface on aiohttp's connections.

aiohttp, because httpx's own pool keeps connections of cancelled calls as busy for ever, and takes 7–9 ms of CPU a call
when hundreds start at once.
"""

import functools
import ipaddress
import ssl
import urllib.request

import aiohttp
import httpx
from httpx_aiohttp import AiohttpTransport

from kit.model.errors import UnusableKey, UnusableUrl

CONNECTION_ERRORS = (httpx.RequestError, aiohttp.ClientError)
"""What a broken exchange raises; the transport maps only some of aiohttp's errors to httpx's."""

# More calls than this wait for a connection, within their own time limit: below the usual limit of open files.
_MAX_CONNECTIONS = 600


def open_client(base_url: str, api_key: str | None) -> httpx.AsyncClient:
    """A client for the server at `base_url`.

    TLS is verified, redirects and cookies are not followed, and no time limit is set: callers bound their own waits.
    The environment's proxy is used, except for a server on this machine. Raises ValueError on a URL that isn't
    http(s), has no host or holds credentials, and on a key that can't stand in a header; the key isn't quoted.
    """
    url = _checked(base_url)
    verify = _trusted()

    def session() -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(ssl=verify, limit=_MAX_CONNECTIONS)
        return aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())

    proxy = _proxy(url)
    transport = AiohttpTransport(client=session, verify=verify, proxy=httpx.Proxy(proxy) if proxy else None)
    # Compression would hold back the pieces of a stream.
    headers = {"Accept-Encoding": "identity", **_authorization(api_key)}
    return httpx.AsyncClient(transport=transport, headers=headers, timeout=None, trust_env=False)  # noqa: S113


def cause_of(error: httpx.RequestError | aiohttp.ClientError) -> str:
    """The name of what broke an exchange; its text isn't given, for it may quote what the server sent."""
    return type(error.__cause__ or error).__name__


@functools.cache
def _trusted() -> ssl.SSLContext:
    # Reading the authorities takes tens of milliseconds; one context serves every client of the process.
    return httpx.create_ssl_context()


def _checked(base_url: str) -> httpx.URL:
    try:
        url = httpx.URL(base_url)
    except httpx.InvalidURL:
        raise UnusableUrl("the model server's base URL is not a URL") from None
    if url.scheme not in ("http", "https") or not url.host:
        raise UnusableUrl("the model server's base URL must begin with http:// or https:// and name a host")
    if url.port is not None and not 0 < url.port < 65536:
        raise UnusableUrl("the model server's base URL names a port that can't exist")
    if url.userinfo:
        raise UnusableUrl("the model server's base URL must not hold a user name or a password")
    return url


def _authorization(api_key: str | None) -> dict[str, str]:
    if not api_key:
        return {}
    if not api_key.isascii() or not api_key.isprintable():
        raise UnusableKey("the model server's API key holds characters that an HTTP header can't carry")
    return {"Authorization": f"Bearer {api_key}"}


def _proxy(url: httpx.URL) -> str | None:
    if _is_loopback(url.host) or urllib.request.proxy_bypass(url.host):
        return None
    proxies = urllib.request.getproxies()
    return proxies.get(url.scheme) or proxies.get("all")


def _is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
