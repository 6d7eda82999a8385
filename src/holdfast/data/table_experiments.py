"""Tables in experiments, and trees that were trained on them before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor

from holdfast.cases import AskableModel
from holdfast.data.dataset import DataSet, Examples
from holdfast.data.network import Network, Place
from holdfast.data.tabular import Table, adult, adult_trees, breast_cancer, california_housing, is_california, wine
from holdfast.draws import generator
from holdfast.errors import HoldfastError
from holdfast.models.trees import trees
from holdfast.settings import Natural

_LIBRARY: dict[str, Callable[[], Table]] = {"breast-cancer": breast_cancer, "wine": wine}


@dataclass(frozen=True)
class TableData(DataSet):
    """Rows of a table.

    Attributes:
        root: ``"breast-cancer"`` or ``"wine"`` of scikit-learn; a file of California Housing, as for
            ``california_housing``; or a file of Adult, as for ``adult``. None: the 2,000 rows of Adult that the package
            contains.
        shuffle: Seed of a random order of the rows, from which ``first`` and ``count`` take those to explain. Rows keep
            their numbers as names. None: the order of the table, which in many tables is one of classes or places.
    """

    name: ClassVar[str] = "tables"
    modality: ClassVar[str] = "table"
    networks: ClassVar[tuple[str, ...]] = (
        "table-trees",
        "table-forest",
        "table-xgboost",
        "table-knn",
        "table-logistic",
        "table-mlp",
    )

    shuffle: Natural | None = None

    @property
    def is_adult(self) -> bool:
        """Whether it is the table that the embedded trees read."""
        return self.root not in _LIBRARY and not self._is_california

    @property
    def title(self) -> str:
        """What the table is called."""
        if self._is_california:
            return "California"
        return "Adult" if self.is_adult else str(self.root)

    @property
    def default_network(self) -> str:
        return "table-trees" if self.is_adult else "table-forest"

    @property
    def _is_california(self) -> bool:
        return self.root is not None and self.root not in _LIBRARY and is_california(self.root)

    def table(self) -> Table:
        """Read the whole table.

        Raises:
            HoldfastError: It cannot be read.
        """
        if self.root in _LIBRARY:
            return _LIBRARY[self.root]()
        return california_housing(self.root) if self.root and self._is_california else adult(self.root)

    def order(self, rows: int) -> Tensor:
        """Return the numbers of the rows in the order of the experiment.

        Args:
            rows: How many rows the table has.
        """
        return torch.arange(rows) if self.shuffle is None else torch.randperm(rows, generator=generator(self.shuffle))

    def load(self, network: Any, limit: int | None, device: str) -> Examples:
        table = self.table()
        order = self.order(len(table))
        return Examples(table.x[order], tuple(f"row {number}" for number in order.tolist()), columns=table.columns)


@dataclass(frozen=True)
class TableTrees(Network):
    """Trees that were trained before.

    Attributes:
        weights: ``"embedded"`` (trees for Adult) or a file of trees, as for ``hf.trees``: XGBoost .json or .ubj,
            LightGBM .txt, CatBoost .json, scikit-learn .skops, trained on ``columns.matrix(table)``.
    """

    name: ClassVar[str] = "table-trees"

    def model(self, data: DataSet, examples: Examples, place: Place) -> tuple[AskableModel, dict[str, str]]:
        assert isinstance(data, TableData)
        assert examples.columns is not None
        if self.weights == "train":
            raise HoldfastError('model.weights should be "embedded" or a file of trees: table-forest is trained.')
        if self.weights == "embedded":
            if not data.is_adult:
                raise HoldfastError(
                    f"the embedded trees are for Adult, got {data.title}: name a file of trees with model.weights, or "
                    "use table-forest."
                )
            return adult_trees(examples.columns).on(place.device), {"table": data.title}
        classes = () if not data.is_adult else data.table().classes
        made = trees(Path(self.weights), columns=examples.columns, classes=classes)
        return made.on(place.device), {"table": data.title, "trees": Path(self.weights).name}
