"""The engine's settings."""

from pydantic import Field, SecretStr

from kit.settings import Settings

PROVIDER_BASE_URL = "https://api.mistral.ai/v1"
"""Where a key without a base URL is used: the provider the product was made for."""


class EngineSettings(Settings):
    """What the engine reads."""

    engine_address: str = "127.0.0.1:50051"
    treestore_address: str = "127.0.0.1:50052"
    quota_address: str = "127.0.0.1:50053"
    redis_url: SecretStr
    internal_key: SecretStr
    llm_base_url: str = ""
    llm_api_key: SecretStr | None = None
    llm_timeout_seconds: float = Field(60, gt=0)
    llm_idle_seconds: float = Field(20, gt=0)
    model_small: str = ""
    model_large: str = ""
    model_codestral: str = ""
    model_pixtral: str = ""
    lease_seconds: float = Field(30, ge=3)

    @property
    def base_url(self) -> str:
        """Where the model is."""
        return self.llm_base_url or PROVIDER_BASE_URL
