"""The engine: settings, what it talks to, what it thinks with, and its two services."""

import grpc
from lintello.engine.v1 import engine_pb2, engine_pb2_grpc

from kit.channel import Peer
from kit.identity import Signer, Verifier
from kit.model import ChatModel, UnusableKey, UnusableUrl
from kit.prompts import Prompts
from kit.serve import Service, run, serve
from kit.settings import BadSetting, load
from services.engine.adapters.aliases import Aliases
from services.engine.adapters.model import ChatModels
from services.engine.adapters.quota import QuotaPeer
from services.engine.adapters.treestore import TreestorePeer
from services.engine.errors import ERRORS
from services.engine.labels import FOLDER, Labels, load_icons
from services.engine.modes.catalog import Catalog
from services.engine.pipeline import Pipeline
from services.engine.runs import Runs
from services.engine.servicer import ACCESS, EngineServicer, ModeServicer
from services.engine.settings import EngineSettings


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
    quota = Peer(settings.quota_address, "quota", signer.mint)
    store, catalog = TreestorePeer(treestore), Catalog.load()
    labels = {locale: Labels(locale) for locale in ("fr", "en")}
    pipeline = Pipeline(
        store=store,
        quota=QuotaPeer(quota),
        model=ChatModels(client, aliases),
        catalog=catalog,
        prompts=Prompts(FOLDER),
        labels=labels,
        icons=load_icons(),
        renew_seconds=settings.lease_seconds / 3,
    )
    runs = Runs(pipeline, store, labels)

    def add(server: grpc.aio.Server) -> None:
        engine_pb2_grpc.add_EngineServiceServicer_to_server(EngineServicer(runs, settings.locale), server)
        engine_pb2_grpc.add_ModeServiceServicer_to_server(ModeServicer(catalog, settings.locale), server)

    names = tuple(service.full_name for service in engine_pb2.DESCRIPTOR.services_by_name.values())
    verifier = Verifier(settings.internal_public_keys, "engine")
    service = Service("engine", settings.engine_address, names, add, ACCESS, ERRORS, verifier, settings.drain_seconds)
    try:
        await serve(service, runs.drain)
    finally:
        await client.aclose()
        await treestore.close()
        await quota.close()


if __name__ == "__main__":
    run("engine", main)
