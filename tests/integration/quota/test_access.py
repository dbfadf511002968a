"""Whose tokens the quota service takes (FAULTS 33)."""

import grpc
import pytest
from lintello.quota.v1 import quota_pb2 as pb
from lintello.quota.v1.quota_pb2_grpc import QuotaServiceStub

from kit.channel import Peer
from kit.errors import RemoteError
from kit.ids import new_id
from tests.integration.quota.client import Quota
from tests.servers.identity import USER, Keys, keys


async def test_a_user_s_token_takes_no_lease(quota: Quota) -> None:
    with pytest.raises(RemoteError) as refused:
        await quota.acquire_as_gateway()
    assert (refused.value.code, refused.value.reason) == (grpc.StatusCode.PERMISSION_DENIED, "FORBIDDEN")


async def test_a_user_s_token_records_no_usage(quota: Quota) -> None:
    with pytest.raises(RemoteError) as refused:
        await quota.record_as_gateway()
    assert (refused.value.code, refused.value.reason) == (grpc.StatusCode.PERMISSION_DENIED, "FORBIDDEN")


async def test_the_status_is_for_admins_only(quota: Quota) -> None:
    with pytest.raises(RemoteError) as refused:
        await quota.status_as_user()
    assert (refused.value.code, refused.value.reason) == (grpc.StatusCode.PERMISSION_DENIED, "FORBIDDEN")


async def test_a_call_without_a_token_is_unauthenticated(quota: Quota) -> None:
    async with grpc.aio.insecure_channel(quota.process.address) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await QuotaServiceStub(channel).AcquireLease(pb.AcquireLeaseRequest(lease_id=new_id()))
    assert refused.value.code() == grpc.StatusCode.UNAUTHENTICATED


async def test_a_token_for_another_service_is_unauthenticated(quota: Quota, identity: Keys) -> None:
    await _assert_unauthenticated(Peer(quota.process.address, "treestore", identity.engine_signer.mint))


async def test_a_token_signed_with_a_key_nobody_knows_is_unauthenticated(quota: Quota) -> None:
    await _assert_unauthenticated(Peer(quota.process.address, "quota", keys().engine_signer.mint))


async def _assert_unauthenticated(peer: Peer) -> None:
    request = pb.AcquireLeaseRequest(lease_id=new_id())
    try:
        with pytest.raises(RemoteError) as refused:
            await peer.unary(QuotaServiceStub(peer.channel).AcquireLease, request, USER)
    finally:
        await peer.close()
    assert (refused.value.code, refused.value.reason) == (grpc.StatusCode.UNAUTHENTICATED, "UNAUTHENTICATED")
