"""What the quota service may refuse, and as what."""

import grpc

from kit.errors import ErrorTable, Refusal


class LeasesUnavailable(Exception):
    """Redis, which holds the leases, doesn't answer."""


class UsageUnavailable(Exception):
    """PostgreSQL, which holds the books, doesn't answer."""


ERRORS: ErrorTable = {
    LeasesUnavailable: Refusal(grpc.StatusCode.UNAVAILABLE, "UNAVAILABLE", "the leases can't be reached"),
    UsageUnavailable: Refusal(grpc.StatusCode.UNAVAILABLE, "UNAVAILABLE", "the books can't be reached"),
}
