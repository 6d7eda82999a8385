"""Jobs on a Ray cluster, which schedules them and repeats those of a worker that died."""

from __future__ import annotations

import logging
import os
import secrets
import signal
import socket
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, ClassVar

from torch import Tensor

from holdfast.cases import Cases
from holdfast.errors import HoldfastError, HoldfastWarning, first_line
from holdfast.experiment.engine import Batch, Engine, Moving, Outcome, outcome_of
from holdfast.experiment.store import Unit
from holdfast.experiment.watchdog import MARK, Watchdog
from holdfast.features import Features
from holdfast.models.model import Model

_RETRIES = 5  # times a task is begun anew when its worker dies
_LOOPBACK = "127.0.0.1"
_LOOK = 1.0  # seconds between two looks at the processes of the cluster
_HEAD = ("gcs_server", "raylet")  # without these a cluster starts no task


class Cluster(Engine):
    """Every batch of jobs is a Ray task. The model and every block of cases are put into the object store once.

    Args:
        address: A running cluster; None: one on this machine is started, and stopped at the end.
        slots: How many tasks may be out at once; default: the cores of the cluster, or its GPUs if tasks take one.
        num_gpus: How many GPUs a task takes.
    """

    name: ClassVar[str] = "ray"
    has_workers: ClassVar[bool] = True

    @classmethod
    def start(cls, address: str | None, workers: int | None, device: str) -> Cluster:
        return cls(address, workers, num_gpus=1.0 if device.startswith("cuda") else 0.0)

    def __init__(self, address: str | None = None, slots: int | None = None, *, num_gpus: float = 0.0):
        self._own = False
        self._watchdog: Watchdog | None = None
        with _private() if address is None else nullcontext():
            try:
                import ray  # an optional extra, heavy to import
            except ImportError as error:
                raise HoldfastError('the engine ray requires Ray: pip install "holdfast[ray]".') from error
            self._ray, self._num_gpus = ray, num_gpus
            if not ray.is_initialized():
                self._begin(address, slots)
        resources = ray.cluster_resources()
        most = int(resources.get("GPU", 0) / num_gpus) if num_gpus else int(resources.get("CPU", 1))
        if most < 1:
            self.close()
            raise HoldfastError("the Ray cluster has no GPU: start one there, or use --device cpu.")
        self.slots = slots or most
        self._out: dict[Any, Batch] = {}

    def _begin(self, address: str | None, slots: int | None) -> None:
        self._own = True
        if address is None:
            self._watchdog = Watchdog()
            os.environ[MARK] = self._watchdog.mark
            _read_token_anew(self._ray)
        try:
            _knock(address)
            with _own_signals():
                self._ray.init(
                    address=address or "local",
                    num_cpus=None if address else slots,
                    include_dashboard=None if address else False,
                    log_to_driver=False,
                    logging_level=logging.ERROR,
                    **({} if address else {"_node_ip_address": _LOOPBACK}),
                )
        except Exception as error:  # Ray raises plain Exceptions, too
            self.close()
            place = f"cannot reach the Ray cluster {address}" if address else "cannot start Ray on this machine"
            raise HoldfastError(f"{place}: {first_line(error)}") from error
        except BaseException:
            self.close()
            raise
        if address is None and self._ray.util.get_node_ip_address() != _LOOPBACK:
            warnings.warn(
                "this Ray listens on all interfaces of this machine: keep others out with a firewall, or use Ray 2.60 "
                "or newer and do not import it before the run.",
                HoldfastWarning,
                stacklevel=4,
            )

    def open(self, blocks: Mapping[str, Cases], moving: Moving) -> None:
        # Everything is sent from main memory: another machine has other GPUs, or none.
        models = {id(cases.model): cases.model for cases in blocks.values()}
        shipped = {key: self._ray.put(model.on("cpu")) for key, model in models.items()}
        self._blocks = {}
        for name, cases in blocks.items():
            tensors = (cases.x, cases.label, cases.target, cases.features.ids)
            put = self._ray.put(tuple(tensor.cpu() for tensor in tensors))
            self._blocks[name] = (
                shipped[id(cases.model)],
                put,
                cases.features.count,
                cases.features.kind,
                cases.features.names,
            )
        self._device = "cuda" if self._num_gpus else "cpu"
        self._task = self._ray.remote(num_cpus=1, num_gpus=self._num_gpus, max_retries=_RETRIES)(_perform)

    def submit(self, batch: Batch, needed: Sequence[Sequence[Unit]]) -> None:
        self._out[self._task.remote(batch, needed, self._device, *self._blocks[batch[0].block])] = batch

    def finished(self) -> tuple[Batch, Outcome]:
        ready: list[Any] = []
        while not ready:
            ready, _ = self._ray.wait(list(self._out), num_returns=1, timeout=_LOOK)
            if not ready:
                self._check_head()
        batch = self._out.pop(ready[0])
        try:
            outcome: Outcome = self._ray.get(ready[0])
        except self._ray.exceptions.RayTaskError as error:
            return batch, HoldfastError(f"a task failed on its worker: {_last_line(error)}")
        except self._ray.exceptions.RayError as error:
            return batch, HoldfastError(f"workers died {_RETRIES + 1} times or lost a task: {_last_line(error)}")
        return batch, outcome

    def _check_head(self) -> None:
        """Refuse to wait for a cluster whose head died: Ray itself waits for a minute, then ends the process."""
        node = getattr(getattr(self._ray._private, "worker", None), "_global_node", None)
        dead = [kind for kind, _ in node.dead_processes()] if self._own and node is not None else []
        lost = [kind for kind in dead if kind in _HEAD]
        if lost:
            raise HoldfastError(
                f"Ray's process {lost[0]} died: what was computed is stored, the same command continues from there."
            )

    def close(self) -> None:
        if self._own:
            with _own_signals():
                self._ray.shutdown()
        if self._watchdog is not None:
            self._watchdog.release()


@contextmanager
def _private() -> Iterator[None]:
    """Settings of a cluster of this machine alone. Ray reads them when it is imported and when it starts."""
    settings = {
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # lets it listen on loopback, on every system
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": secrets.token_hex(32),
        "RAY_gcs_rpc_server_reconnect_timeout_s": "20",  # Ray's own minute is for heads of other machines
    }
    before = {name: os.environ.get(name) for name in (*settings, MARK)}
    os.environ.update(settings)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _read_token_anew(ray: Any) -> None:
    """Make Ray forget the authentication of a cluster that this process used before."""
    config, loader = (getattr(ray._raylet, name, None) for name in ("Config", "AuthenticationTokenLoader"))
    if config is not None and loader is not None:  # not in old versions
        config.initialize("")
        loader.instance().reset_cache()


@contextmanager
def _own_signals() -> Iterator[None]:
    """Keep the handlers of signals: Ray sets its own for SIGTERM, which ends the process with a dump."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = [number for number in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(number) is not None]
    before = {number: signal.getsignal(number) for number in numbers}
    try:
        yield
    except SystemExit:  # Ray's handler
        raise KeyboardInterrupt from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _knock(address: str | None) -> None:
    """See that somebody answers at host:port: Ray itself would wait for ever."""
    host, _, port = (address or "").rpartition("://")[2].rpartition(":")
    if host and port.isdecimal():
        socket.create_connection((host, int(port)), timeout=10).close()


def _perform(
    batch: Batch,
    needed: Sequence[Sequence[Unit]],
    device: str,
    model: Model,
    tensors: tuple[Tensor, ...],
    count: int,
    kind: str,
    names: tuple[tuple[str, ...], ...] | None,
) -> Outcome:
    """Compute a batch, on a worker."""
    x, label, target, ids = (tensor.to(device) for tensor in tensors)
    return outcome_of(batch, Cases(model.on(device), x, label, target, Features(ids, count, kind, names)), needed)


def _last_line(error: BaseException) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    return lines[-1].strip() if lines else type(error).__name__
