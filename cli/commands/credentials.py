"""Who the command line is: nobody in particular in `dev`, a user with a token in `jwt`."""

import os

USER = "demo"
SUBSCRIPTION = "lintello"


def own_token() -> str | None:
    """The token this command line speaks with; None where the gateway asks for none.

    In `jwt` mode with a shared secret, whoever holds the secret may be any user: we are the one of `dev` mode.
    """
    secret = os.environ.get("LINTELLO_JWT_SECRET", "")
    if os.environ.get("LINTELLO_AUTH_MODE", "dev") != "jwt" or not secret:
        return None
    from cli.commands.token import user_token

    return user_token(secret, USER, SUBSCRIPTION, admin=True, minutes=10)
