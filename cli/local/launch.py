"""Becomes another program that ends when its supervisor does; run as a script, with the standard library only.

    launch.py <supervisor pid> <signal> <user or -> <lifeline fd or -> <program> [argument…]

On Linux the kernel sends the signal when the supervisor dies (prctl PR_SET_PDEATHSIG). Elsewhere a watcher process
waits for the end of the lifeline, a pipe whose other end only the supervisor holds. It is a program of its own and not
a `preexec_fn`, because forking a process with threads (gRPC has some) to run Python in between isn't safe.
"""

import ctypes
import os
import pwd
import select
import signal
import sys
import time

PR_SET_PDEATHSIG = 1


def main(arguments: list[str]) -> None:
    """Drop to the user, arrange to end with the supervisor, become the program."""
    supervisor, death_signal, user, lifeline, *program = arguments
    if lifeline != "-":
        watch(int(lifeline), os.getpid(), int(death_signal))
    if user != "-":
        entry = pwd.getpwnam(user)
        os.setgroups([])
        os.setgid(entry.pw_gid)
        os.setuid(entry.pw_uid)
    if sys.platform == "linux":
        # After setuid, which clears it.
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(death_signal))
        if os.getppid() != int(supervisor):
            sys.exit(0)
    os.execv(program[0], program)  # noqa: S606 (what this program is for)


def watch(lifeline: int, pid: int, death_signal: int) -> None:
    """Leave a detached process that signals `pid`, then kills its group, when the lifeline ends."""
    if first := os.fork():
        os.waitpid(first, 0)
        os.close(lifeline)
        return
    if os.fork():
        os._exit(0)
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    while not select.select([lifeline], [], [], 1.0)[0]:
        if not alive(pid):
            os._exit(0)
    signal_all(pid, death_signal)
    for _ in range(50):
        if not alive(pid):
            break
        time.sleep(0.1)
    signal_all(pid, signal.SIGKILL)
    os._exit(0)


def signal_all(pid: int, number: int) -> None:
    """Signal the process; the whole group when it is to be killed."""
    try:
        if number == signal.SIGKILL:
            os.killpg(pid, number)
        else:
            os.kill(pid, number)
    except ProcessLookupError:
        pass


def alive(pid: int) -> bool:
    """Whether the process exists."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


if __name__ == "__main__":
    main(sys.argv[1:])
