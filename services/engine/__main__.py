"""The engine: settings, what it talks to, what it thinks with, and its two services."""

import asyncio

import grpc
from lintello.engine.v1 import engine_pb2, engine_pb2_grpc
from prometheus_client import CollectorRegistry

from kit.channel import Peer
from kit.identity import Signer, Verifier
from kit.model import ChatModel, UnusableKey, UnusableUrl
from kit.prompts import Prompts
from kit.serve import Service, run, serve
from kit.settings import BadSetting, load
from services.engine.adapters.aliases import Aliases
from services.engine.adapters.model import ChatModels
from services.engine.adapters.quota import QuotaPeer
from services.engine.adapters.replay import RedisReplay
from services.engine.adapters.stops import RedisStops
from services.engine.adapters.treestore import TreestorePeer
from services.engine.errors import ERRORS
from services.engine.janitor import keep_sweeping
from services.engine.labels import FOLDER, Labels, load_icons
from services.engine.metrics import Metrics
from services.engine.modes.catalog import Catalog
from services.engine.pipeline import Pipeline
from services.engine.runs import Runs
from services.engine.servicer import ACCESS, EngineServicer, ModeServicer
from services.engine.settings import EngineSettings
from services.engine.watch import Watch


def model_client(settings: EngineSettings) -> ChatModel:
    """The client of the model that settings name. Raises BadSetting when its URL or key can't be used."""
    key = settings.llm_api_key.get_secret_value() if settings.llm_api_key else None
    if not settings.llm_base_url and key is None:
        raise BadSetting("LINTELLO_LLM_BASE_URL: is missing, and so is LINTELLO_LLM_API_KEY")
    timeout, idle = settings.llm_timeout_seconds, settings.llm_idle_seconds
    try:
        return ChatModel(settings.base_url, key, timeout=timeout, idle_timeout=idle)
    except UnusableUrl as error:
        raise BadSetting(f"LINTELLO_LLM_BASE_URL: {error}") from None
    except UnusableKey as error:
        raise BadSetting(f"LINTELLO_LLM_API_KEY: {error}") from None


async def main() -> None:
    """Wire the engine and serve it."""
    settings = load(EngineSettings)
    signer = Signer(settings.internal_key.get_secret_value())
    client = model_client(settings)
    aliases = Aliases(
        client,
        {
            "small": settings.model_small,
            "large": settings.model_large,
            "codestral": settings.model_codestral,
            "pixtral": settings.model_pixtral,
        },
    )
    treestore = Peer(settings.treestore_address, "treestore", signer.mint)
    quota_peer = Peer(settings.quota_address, "quota", signer.mint)
    redis_url = settings.redis_url.get_secret_value()
    replay, stops = RedisReplay(redis_url), RedisStops(redis_url)
    store, quota, catalog = TreestorePeer(treestore), QuotaPeer(quota_peer), Catalog.load()
    labels = {locale: Labels(locale) for locale in ("fr", "en")}
    registry = CollectorRegistry()
    metrics = Metrics(registry)
    pipeline = Pipeline(
        store=store,
        quota=quota,
        model=ChatModels(client, aliases),
        catalog=catalog,
        prompts=Prompts(FOLDER),
        labels=labels,
        icons=load_icons(),
        renew_seconds=settings.lease_seconds / 3,
    )
    runs = Runs(pipeline, replay, stops, labels, metrics)
    watch = Watch(runs, store, replay, labels[settings.locale])
    servicer = EngineServicer(runs, watch, store, settings.locale, metrics)

    def add(server: grpc.aio.Server) -> None:
        engine_pb2_grpc.add_EngineServiceServicer_to_server(servicer, server)
        engine_pb2_grpc.add_ModeServiceServicer_to_server(ModeServicer(catalog, settings.locale), server)

    names = tuple(service.full_name for service in engine_pb2.DESCRIPTOR.services_by_name.values())
    verifier = Verifier(settings.internal_public_keys, "engine")
    service = Service(
        name="engine",
        address=settings.engine_address,
        rpc_services=names,
        add=add,
        access=ACCESS,
        errors=ERRORS,
        verifier=verifier,
        drain_seconds=settings.drain_seconds,
        metrics_port=settings.metrics_port,
        registry=registry,
    )
    works = (serve(service, runs.drain), runs.obey(), keep_sweeping(store, quota, metrics))
    tasks = [asyncio.create_task(work) for work in works]
    try:
        # Whichever fails ends the process: nobody would notice that runs aren't stopped or entered any more.
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await client.aclose()
        for connection in (treestore, quota_peer, replay, stops):
            await connection.close()


if __name__ == "__main__":
    run("engine", main)
