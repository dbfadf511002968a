"""Metrics of a process, read as Prometheus reads them."""

import httpx


async def scrape(port: int) -> str:
    """What is served at a METRICS_PORT."""
    async with httpx.AsyncClient(trust_env=False) as client:
        answer = await client.get(f"http://127.0.0.1:{port}/metrics")
    assert answer.status_code == 200
    return answer.text
