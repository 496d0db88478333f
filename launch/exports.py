"""What a run writes for other programs: curves for TensorBoard, a Parquet file of its metrics."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from common.config import DiagnosisSettings
from common.extras import install_command
from common.run_paths import RunPaths
from launch.parquet import ParquetExport


def export_news(settings: DiagnosisSettings, paths: RunPaths) -> Iterator[str]:
    """Where to look, or what is missing and how to get it."""
    if settings.enable_tensorboard:
        place = f"curves for TensorBoard: tensorboard --logdir {paths.tensorboard}"
        yield place if _has("tensorboard") else _missing("--enable-tensorboard", "tensorboard")
    if settings.parquet:
        place = f"metrics for data tools: {paths.parquet}"
        yield place if _has("pyarrow") else _missing("--parquet", "parquet")


@contextmanager
def exporting(settings: DiagnosisSettings, paths: RunPaths) -> Iterator[None]:
    """Meanwhile the Parquet file is kept fresh; the learner itself writes for TensorBoard."""
    if not (settings.parquet and _has("pyarrow")):
        yield
        return
    export = ParquetExport(paths.metrics, paths.parquet)
    try:
        yield
    finally:
        export.close()


def _has(package: str) -> bool:
    return find_spec(package) is not None


def _missing(flag: str, extra: str) -> str:
    command = install_command(extra)
    return f"WARNING: {flag} is without effect: a package is missing; run: {command}"
