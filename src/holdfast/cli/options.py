"""Options that several subcommands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
ImageFile = Annotated[
    Path | None, typer.Argument(help="An image file: of a digit, light on dark, or a photograph for --model imagenet.")
]
Digit = Annotated[int | None, typer.Option(help="An embedded test digit, 0 to 999, instead of a file.")]
Photo = Annotated[int | None, typer.Option(help="A photograph that comes with a package, by number.")]
Text = Annotated[str | None, typer.Option(help="A text instead of an image.")]
Table = Annotated[
    Path | None, typer.Option(help="A .csv file with names of columns; its rows are inputs. Default: Adult, embedded.")
]
Row = Annotated[int | None, typer.Option(help="The row of the table to explain, from 0.")]
ColumnsFile = Annotated[
    Path | None,
    typer.Option("--columns", help="What the columns are, written by Columns.save. Default: found out from the table."),
]
Fixed = Annotated[str | None, typer.Option(help="Columns that never change, besides those that --columns says.")]
Rising = Annotated[str | None, typer.Option(help="Columns whose values may only become larger, separated by commas.")]
Falling = Annotated[str | None, typer.Option(help="Columns whose values may only become smaller.")]
Weights = Annotated[
    Path | None, typer.Option(help="A .safetensors file for the network of --model package.module:function.")
]
Classes = Annotated[str | None, typer.Option(help="Names of the classes of your own --model, separated by commas.")]
LabelColumn = Annotated[str | None, typer.Option(help="The column of --table with the class, which the model ignores.")]
Model = Annotated[
    str | None,
    typer.Option(
        help="For images: digits, imagenet (default with --photo), torchvision:NAME or timm:NAME. For texts: topics "
        "(default), a file that holdfast train wrote, or huggingface:NAME. For tables: a file of trees (.json, .ubj, "
        ".txt, .skops), or adult-trees (default without --table). Your own: package.module:function, which returns a "
        "model and runs your code, TorchScript (.pt) or ONNX (.onnx)."
    ),
]
FeatureKind = Annotated[
    str | None, typer.Option(help="pixels, patches:N or superpixels:N. Default for photographs: patches:16.")
]
Methods = Annotated[
    str | None,
    typer.Option(
        "--method",
        help="An explainer, or several separated by commas; holdfast list shows them. Default: greedy-as-quick, for "
        "texts greedy-as-words, for tables greedy.",
    ),
]
Objective = Annotated[
    str | None,
    typer.Option(
        help="What Greedy methods optimise: robustness-rest (default: hard to change when held) or robustness-relevant."
    ),
]
Target = Annotated[str | None, typer.Option(help="Why not this class? By number or name. Default: any other class.")]
Reference = Annotated[
    str | None,
    typer.Option(help="What replaces a removed feature: a number, blur, mean or uniform; for texts words or a number."),
]
Top = Annotated[
    str | None,
    typer.Option(help="How many features are relevant: 20% (default) or a number; 5 words or 3 columns (default)."),
]
Norm = Annotated[str, typer.Option("--p", help="The norm of the change: 1, 2 or inf.")]
Resize = Annotated[bool, typer.Option("--resize", help="Scale the image of a digit, and a mask, to fit.")]
Device = Annotated[str, typer.Option(help="Where the network runs: cpu, cuda, cuda:1, mps.")]
Seed = Annotated[int, typer.Option(min=0, max=2**63 - 1, help="Seed of everything random.")]
