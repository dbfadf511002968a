"""The treestore over gRPC."""

from collections.abc import Sequence
from typing import TypeVar

import grpc
from lintello.treestore.v1 import treestore_pb2 as pb
from lintello.treestore.v1 import treestore_pb2_grpc

from kit.channel import Peer
from kit.errors import RemoteError
from kit.identity import Caller
from kit.ids import new_id
from services.engine.domain import Finish, Node, Question, RunRecord, Started, Turn, Unsettled
from services.engine.ports import RunClosed, StoreAway
from services.engine.wire import (
    finish_to_wire,
    node_to_wire,
    run_from_wire,
    started_from_wire,
    turn_from_wire,
    unsettled_from_wire,
)

_AWAY = {
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.CANCELLED,
    grpc.StatusCode.INTERNAL,
    grpc.StatusCode.UNKNOWN,
}
_CLOSED = {grpc.StatusCode.FAILED_PRECONDITION, grpc.StatusCode.NOT_FOUND}
HISTORY_TRIES = 3
ENGINE = Caller("engine")
"""For whom the runs of all owners are read: nobody, so this process itself."""

Request = TypeVar("Request")
Response = TypeVar("Response")


class TreestorePeer:
    """The treestore service (port Store)."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        self._stub = treestore_pb2_grpc.TreeStoreServiceStub(peer.channel)

    async def start_run(self, run_id: str, question: Question, title: str, caller: Caller) -> Started:
        """Store the user's message and the run, or find the one its idempotency key has started before.

        Said once more when the reply was lost.
        """
        request = pb.StartRunRequest(
            run_id=run_id,
            message_id=new_id(),
            conversation_id=question.conversation_id or new_id(),
            new_conversation=not question.conversation_id,
            message=question.message,
            title="" if question.conversation_id else title,
            parent_node_id=question.parent_node_id,
            idempotency_key=question.idempotency_key,
            request_hash=question.request_hash,
            subscription=caller.subscription,
        )
        return started_from_wire(await self._twice(self._stub.StartRun, request, caller))

    async def heartbeat(self, run_id: str, last_seq: int, caller: Caller) -> bool:
        """Say that a run is alive. True: the user wants it to end."""
        request = pb.HeartbeatRequest(run_id=run_id, last_seq=last_seq)
        answer = await self._write(self._stub.Heartbeat, request, caller)
        return answer.stop_requested

    async def append(self, run_id: str, nodes: Sequence[Node], caller: Caller) -> None:
        """Add finished nodes."""
        request = pb.AppendNodesRequest(run_id=run_id, nodes=[node_to_wire(node) for node in nodes])
        await self._write(self._stub.AppendNodes, request, caller)

    async def finish(self, finish: Finish, caller: Caller) -> None:
        """End a run."""
        await self._write(self._stub.FinishRun, finish_to_wire(finish), caller)

    async def get_run(self, run_id: str, caller: Caller) -> RunRecord:
        """A run of this user's."""
        try:
            answer = await self._peer.unary(self._stub.GetRun, pb.GetRunRequest(run_id=run_id), caller)
        except RemoteError as error:
            if error.code in _AWAY:
                raise StoreAway(error.code.name) from None
            raise
        return run_from_wire(answer.run, answer.event_key)

    async def list_runs(
        self, page_size: int, page_token: str, conversation_id: str, active_only: bool, caller: Caller
    ) -> tuple[list[RunRecord], str]:
        """A page of this user's runs, and the token of the next one."""
        request = pb.ListRunsRequest(
            page_size=page_size, page_token=page_token, conversation_id=conversation_id, active_only=active_only
        )
        answer = await self._peer.unary(self._stub.ListRuns, request, caller)
        return [run_from_wire(run) for run in answer.runs], answer.next_page_token

    async def request_stop(self, run_id: str, caller: Caller) -> None:
        """Note that the user wants a run to end; said once more when the reply was lost."""
        await self._twice(self._stub.RequestStop, pb.RequestStopRequest(run_id=run_id), caller)

    async def unsettled(self) -> list[Unsettled]:
        """Close the runs whose engine is silent; those that ended and aren't in the books."""
        answer = await self._write(self._stub.ListUnsettledRuns, pb.ListUnsettledRunsRequest(), ENGINE)
        return [unsettled_from_wire(run) for run in answer.runs]

    async def settle(self, run_id: str, caller: Caller) -> None:
        """Note that a run is in the books; one that was deleted meanwhile needs no note."""
        try:
            await self._write(self._stub.SettleRun, pb.SettleRunRequest(run_id=run_id), caller)
        except RunClosed:
            return

    async def history(self, conversation_id: str, node_id: str, caller: Caller) -> list[Turn]:
        """The messages along a node's lineage; a store that is away is asked again."""
        request = pb.GetLineageRequest(conversation_id=conversation_id, node_id=node_id)
        for _ in range(HISTORY_TRIES):
            try:
                answer = await self._peer.unary(self._stub.GetLineage, request, caller)
            except RemoteError as error:
                if error.code in _AWAY:
                    continue
                raise
            return [turn_from_wire(message) for message in answer.messages]
        raise StoreAway("the store doesn't answer")

    async def _twice(
        self, method: grpc.aio.UnaryUnaryMultiCallable[Request, Response], request: Request, caller: Caller
    ) -> Response:
        try:
            return await self._peer.unary(method, request, caller)
        except RemoteError as error:
            if error.code not in _AWAY:
                raise
            return await self._peer.unary(method, request, caller)

    async def _write(
        self, method: grpc.aio.UnaryUnaryMultiCallable[Request, Response], request: Request, caller: Caller
    ) -> Response:
        try:
            return await self._peer.unary(method, request, caller)
        except RemoteError as error:
            if error.code in _AWAY:
                raise StoreAway(error.code.name) from None
            if error.code in _CLOSED:
                raise RunClosed(error.reason) from None
            raise
