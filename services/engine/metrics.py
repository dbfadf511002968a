"""What the engine counts about itself, for Prometheus. Names of people, conversations and runs are in none of it."""

from prometheus_client import CollectorRegistry, Counter, Gauge


class Metrics:
    """The engine's collectors, registered at one registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.started = Counter("lintello_runs_started", "Runs that began in this process", registry=registry)
        self.ended = Counter("lintello_runs_ended", "Runs that ended in this process", ["ending"], registry=registry)
        self.running = Gauge("lintello_runs_in_flight", "Runs of this process that go on", registry=registry)
        self.kept = Gauge("lintello_runs_in_memory", "Runs whose events this process holds", registry=registry)
        self.readers = Gauge("lintello_run_readers", "Streams of events that are open", registry=registry)
        self.replay_failures = Counter(
            "lintello_replay_failures", "Writes that the replay log did not take", registry=registry
        )
        self.unsettled = Gauge(
            "lintello_runs_unsettled", "Ended runs found not to be in the books at the last sweep", registry=registry
        )
