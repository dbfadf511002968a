"""An answer that takes its time, and what a reload shows of it."""

from tests.e2e.client import Event, first
from tests.faults.reader import Reader
from tests.faults.site import Site

PIECES = [f"pièce {number:03}, " for number in range(200)]
ANSWER = "".join(PIECES)


def speak_slowly(site: Site, seconds: float = 4.0) -> None:
    """From now on every synthesis says ANSWER, and takes so long over it."""
    rate = len(ANSWER) / 4 / seconds
    site.trial.set_faults(
        [{"match": {"role": "synthesize"}, "times": 1000, "action": {"chunks": PIECES, "rate": rate}}]
    )


async def stored_answer(site: Site, reader: Reader) -> Event:
    """The answer's message as a reload shows it."""
    conversation = first(reader.events, "run_started")["conversation_id"]
    messages = (await site.user.get(f"/api/conversations/{conversation}/messages"))["items"]
    (answer,) = [message for message in messages if message["role"] == "assistant"]
    return dict(answer)
