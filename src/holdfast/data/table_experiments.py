"""Tables in experiments, and the classifiers that read them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import torch

from holdfast.cases import AskableModel
from holdfast.data.dataset import DataSet, Examples
from holdfast.data.network import Network, Place
from holdfast.data.tabular import Table, adult, adult_trees, breast_cancer, wine
from holdfast.errors import HoldfastError
from holdfast.models.trees import trees

_LIBRARY: dict[str, Callable[[], Table]] = {"breast-cancer": breast_cancer, "wine": wine}


@dataclass(frozen=True)
class TableData(DataSet):
    """Rows of a table.

    Attributes:
        root: ``"breast-cancer"`` or ``"wine"`` of scikit-learn, or a file of Adult, as for ``adult``. None: the 2,000
            rows of Adult that the package contains.
    """

    name: ClassVar[str] = "tables"
    modality: ClassVar[str] = "table"
    networks: ClassVar[tuple[str, ...]] = ("table-trees", "table-forest")

    @property
    def is_adult(self) -> bool:
        """Whether it is the table that the embedded trees read."""
        return self.root not in _LIBRARY

    @property
    def title(self) -> str:
        """What the table is called."""
        return "Adult" if self.is_adult else str(self.root)

    def table(self) -> Table:
        """Read the whole table.

        Raises:
            HoldfastError: It cannot be read.
        """
        return adult(self.root) if self.root not in _LIBRARY else _LIBRARY[self.root]()

    def load(self, network: Any, limit: int | None, device: str) -> Examples:
        table = self.table()
        return Examples(table.x, tuple(f"row {number}" for number in range(len(table))), columns=table.columns)


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


@dataclass(frozen=True)
class TableForest(Network):
    """A random forest of scikit-learn, trained on the rows that the experiment does not explain, when it begins.

    Attributes:
        weights: ``"train"``.
        count: How many trees.
        depth: How deep they are.
    """

    weights: str = "train"
    count: int = 20
    depth: int = 5
    name: ClassVar[str] = "table-forest"

    def model(self, data: DataSet, examples: Examples, place: Place) -> tuple[AskableModel, dict[str, str]]:
        assert isinstance(data, TableData)
        if self.weights != "train":
            raise HoldfastError('model.weights should be "train" for table-forest: files of trees are for table-trees.')
        try:
            from sklearn.ensemble import RandomForestClassifier  # not a dependency
        except ImportError as error:
            raise HoldfastError("table-forest needs scikit-learn: pip install scikit-learn.") from error
        table = data.table()
        rest = torch.ones(len(table), dtype=torch.bool)
        rest[data.first : data.first + data.count] = False
        if not bool(rest.any()):
            raise HoldfastError("no row is left to train table-forest on: lower data.count.")
        forest = RandomForestClassifier(self.count, max_depth=self.depth, random_state=self.seed)
        values = torch.from_numpy(table.columns.unscaled(table.x))
        forest.fit(values[rest].numpy(), table.y[rest].numpy())
        right = float((torch.from_numpy(forest.predict(values[~rest].numpy())) == table.y[~rest]).double().mean())
        made = trees(forest, columns=table.columns, classes=[table.classes[number] for number in forest.classes_])
        facts = {"table": data.title, "trained on": f"{int(rest.sum())} other rows; {right:.0%} of the rows are right"}
        return made.on(place.device), facts
