"""``holdfast check``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from holdfast.cli import options
from holdfast.cli.app import out as console
from holdfast.errors import HoldfastError
from holdfast.experiment import database
from holdfast.experiment.record import StudyRecord
from holdfast.experiment.repair import Damage, counted, sound_study
from holdfast.experiment.repair import check as verify

app = typer.Typer(add_completion=False)


@app.command()
def check(
    results: Annotated[Path, typer.Argument(help="The results.db of a run, or its folder.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what is damaged; change nothing.")] = False,
    as_json: options.Json = False,
) -> None:
    """Verify the checksums of all units, and remove units that are damaged, so that the next run computes them again.

    The damaged file is kept beside the repaired one. The exit code is 1 if something was damaged.
    """
    path = database.existing(results)
    study = sound_study(path)  # before the repair: a damaged unit has a name only there
    damage, kept = verify(path, dry_run=dry_run)
    if as_json:
        record = {"results": str(path), "sound": damage.sound, "damaged": list(damage.units)}
        record |= {"studies": damage.studies, "file": damage.file, "kept": None if kept is None else str(kept)}
        typer.echo(json.dumps(record))
    else:
        _show(path, damage, kept, _names(study, path))
    if damage:
        raise typer.Exit(1)


def _names(study: dict[str, Any] | None, path: Path) -> dict[str, str]:
    """Return what units are for; nothing for a study of another version of holdfast."""
    try:
        return {} if study is None else StudyRecord.parse(study, path).unit_names
    except HoldfastError:
        return {}


def _show(path: Path, damage: Damage, kept: Path | None, names: dict[str, str]) -> None:
    lines = [f"{path}: {counted(damage.sound, 'sound unit')}, {counted(len(damage.units), 'damaged unit')}."]
    lines += [f"  damaged: {names.get(key, 'unit')} ({key})" for key in damage.units]
    lines += [f"  studies that are damaged: {damage.studies:,}"] if damage.studies else []
    lines += [f"  the file: {damage.file}"] if damage.file else []
    if kept is not None:
        lines.append(
            f"The damaged file is kept as {kept}. The same holdfast run command as before computes what is missing."
        )
    elif damage:
        lines.append("Without --dry-run, holdfast check removes what is damaged.")
    for line in lines:
        console.print(line, soft_wrap=True, highlight=False, markup=False)
