"""What every explainer costs a digit, beside the same method of a peer library in the same run, as tables.

    python benchmarks/explainers.py                       # about an hour on two cores
    python benchmarks/explainers.py --only cost --digits 20 --skip Greedy KernelShap.paper
    python benchmarks/explainers.py --only shap           # kernel SHAP: error on a small game, time at 20,000 samples
    python benchmarks/explainers.py --only order          # signed or absolute? judged by both robustness criteria

Ours, then the peer's, then ours again, and so on; medians. Peers: Captum, and shap where installed.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import statistics
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from captum import attr as captum
from captum.attr._utils.lrp_rules import EpsilonRule
from torch import Tensor, nn

import holdfast as hf
from holdfast.models.torch import layers_of
from tables import RESULTS, hardware, show, wait

Peer = Callable[[hf.Cases], Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sections: dict[str, Callable[[argparse.Namespace], None]] = {"cost": cost, "shap": shap_, "order": order}
    parser.add_argument("--only", nargs="+", choices=sections, default=list(sections))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--digits", type=int, default=100)
    parser.add_argument("--first", type=int, default=200, help="the first digit; settings were chosen on 0-123")
    parser.add_argument("--few", type=int, default=3, help="digits for what takes over ten seconds a digit")
    parser.add_argument("--skip", nargs="*", default=[], help="explainers to leave out, by name")
    parser.add_argument("--json", type=Path, help="also write the tables here")
    options = parser.parse_args()
    warnings.filterwarnings("ignore", module="captum")
    warnings.filterwarnings("ignore", "Setting forward, backward hooks|You are providing multiple inputs")
    print(f"holdfast {hf.__version__}, torch {torch.__version__}, {hardware(options.device)}")
    for name in options.only:
        sections[name](options)
    if options.json:
        options.json.write_text(json.dumps(RESULTS, indent=1))


def ask(options: argparse.Namespace, digits: int, features: hf.Features | None = None) -> hf.Cases:
    model = hf.TorchModel(hf.data.mnist_cnn().module.to(options.device), bounds=(0, 1))
    x = hf.data.mnist().x[options.first : options.first + digits].to(options.device)
    return model.ask(x, features=features)


# ---------------------------------------------------------------------- seconds and rows a digit


def cost(options: argparse.Namespace) -> None:
    patches = hf.Features.patches((1, 28, 28), 4)
    many, few = options.digits, min(options.few, options.digits)
    plan: dict[str, tuple[hf.Explainer, int, hf.Features | None, str, Peer | None]] = {
        "Grad": (hf.Grad(), many, None, "Captum Saliency", _saliency),
        "IntegratedGradients": (hf.IntegratedGradients(), many, None, "Captum IntegratedGradients", _integrated),
        "ExpectedGradients": (hf.ExpectedGradients(), many, None, "Captum GradientShap", _gradient_shap),
        "LeaveOneOut": (hf.LeaveOneOut(), many, None, "Captum FeatureAblation", _ablation),
        "DeepLift": (hf.DeepLift(), many, None, "Captum DeepLift", _deep_lift),
        "Lrp": (hf.Lrp(), many, None, "Captum LRP", _lrp),
        "KernelShap": (hf.KernelShap(), many, None, "", None),
        "Bbmp": (hf.Bbmp(), many, None, "", None),
        "Counterfactual": (hf.Counterfactual(), many, None, "", None),
        "GreedyAS.quick": (hf.GreedyAS.quick(), many, None, "", None),
        "OneStepBanzhaf": (hf.OneStepBanzhaf(), many, None, "", None),
        "Random": (hf.Random(), many, None, "", None),
        "Anchor": (hf.Anchor(), few, patches, "", None),
        "GreedyAS": (hf.GreedyAS(), many, None, "", None),
        "KernelShap.paper": (hf.KernelShap.paper(), many, None, "", None),
        "Greedy": (hf.Greedy(), few, None, "", None),
    }
    rows: list[dict[str, object]] = []
    for name, (explainer, digits, features, peer_name, peer) in plan.items():
        if name in options.skip:
            continue
        cases = ask(options, digits, features)
        explainer(cases[:2])  # warm
        before = cases.model.queries
        explainer(cases[:few])
        spent = cases.model.queries - before
        # Peers give attributions: put beside ours before they are ranked.
        alone = explainer.attribute if peer and isinstance(explainer, hf.Attribution) else explainer
        seconds = _timed(*[partial(run, cases) for run in (alone, peer) if run])
        own, other = seconds[0], seconds[-1]
        rows.append(
            {
                "explainer": name,
                "digits": digits,
                "features": cases.features.count,
                "s a digit": own / digits,
                "rows a digit": spent.forward / few,
                "of them with gradient": spent.gradient / few,
                "peer": peer_name,
                "s a digit, peer": other / digits if peer else "",
                "ours / peer": own / other if peer else "",
            }
        )
        print(f"  {name}: {own / digits:.4g} s a digit", flush=True)
    show("seconds and model rows a digit", rows)


def _timed(*runs: Callable[[], Any]) -> list[float]:
    """Median seconds of each, one after the other, nine times unless that takes over half a minute."""
    seconds: list[list[float]] = [[] for _ in runs]
    for _ in range(9):
        for which, run in enumerate(runs):
            started = time.perf_counter()
            run()
            wait(torch.cuda.is_initialized())
            seconds[which].append(time.perf_counter() - started)
        if sum(map(sum, seconds)) > 30:
            break
    return [statistics.median(taken) for taken in seconds]


def _saliency(cases: hf.Cases) -> Tensor:
    found: Tensor = captum.Saliency(layers_of(cases.model).module).attribute(
        cases.x.clone().requires_grad_(), target=cases.label
    )
    return found


def _integrated(cases: hf.Cases) -> Tensor:
    found: Tensor = captum.IntegratedGradients(layers_of(cases.model).module).attribute(
        cases.x, target=cases.label, n_steps=10, internal_batch_size=max(256, len(cases))
    )
    return found


def _gradient_shap(cases: hf.Cases) -> Tensor:
    """In pieces of 10 digits: all at once it needs 100 times the batch in memory and is slower."""
    method = captum.GradientShap(layers_of(cases.model).module)
    parts = [
        method.attribute(
            part.x, torch.rand(100, *part.x.shape[1:], device=part.x.device), n_samples=100, target=part.label
        )
        for part in (cases[start : start + 10] for start in range(0, len(cases), 10))
    ]
    return torch.cat(parts)


def _ablation(cases: hf.Cases) -> Tensor:
    found: Tensor = captum.FeatureAblation(layers_of(cases.model).module).attribute(cases.x, target=cases.label)
    return found


def _deep_lift(cases: hf.Cases) -> Tensor:
    found: Tensor = captum.DeepLift(layers_of(cases.model).module).attribute(
        cases.x.clone().requires_grad_(), target=cases.label
    )
    return found


def _lrp(cases: hf.Cases) -> Tensor:
    for layer in layers_of(cases.model).module.modules():
        if isinstance(layer, nn.Flatten):
            layer.rule = EpsilonRule()
    found: Tensor = captum.LRP(layers_of(cases.model).module).attribute(
        cases.x.clone().requires_grad_(), target=cases.label
    )
    return found


# ---------------------------------------------------------------------- kernel SHAP


def shap_(options: argparse.Namespace) -> None:
    _errors_on_a_game()
    cases = ask(options, 1)
    rows: list[dict[str, object]] = []
    for samples in (2_000, 20_000):
        runs: dict[str, Callable[[], Any]] = {
            "holdfast KernelShap": partial(hf.KernelShap(samples=samples).attribute, cases),
            "Captum KernelShap": partial(_kernel_shap, cases, samples, 1),
            "Captum KernelShap, 256 subsets at once": partial(_kernel_shap, cases, samples, 256),
        }
        if importlib.util.find_spec("shap"):
            runs["shap KernelExplainer"] = partial(_shap_library, cases, samples)
        hf.KernelShap()(cases)  # warm
        for (name, _), taken in zip(runs.items(), seconds := _timed(*runs.values()), strict=True):
            rows.append({"method": name, "samples": samples, "s a digit": taken, "times ours": taken / seconds[0]})
            print(f"  {name}, {samples} samples: {taken:.3g} s", flush=True)
    show("kernel SHAP, one digit of 784 pixels", rows)


def _kernel_shap(cases: hf.Cases, samples: int, at_once: int) -> Tensor:
    found: Tensor = captum.KernelShap(layers_of(cases.model).module).attribute(
        cases.x, target=cases.label, n_samples=samples, perturbations_per_eval=at_once
    )
    return found


def _shap_library(cases: hf.Cases, samples: int) -> Any:
    import shap  # optional, slow to import

    label = int(cases.label)
    shape = cases.x.shape[1:]

    def score(rows: Any) -> Any:
        return cases.model(torch.as_tensor(rows).float().reshape(-1, *shape))[:, label].cpu().numpy()

    explainer = shap.KernelExplainer(score, torch.zeros(1, cases.x.numel()).numpy())
    return explainer.shap_values(cases.x.flatten(1).cpu().numpy(), nsamples=samples, silent=True, l1_reg=False)


def _errors_on_a_game() -> None:
    """Root mean square error over the exact values, as a share of their size: 12 features, 3 inputs, 10 seeds."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 24), nn.ReLU(), nn.Linear(24, 4)).eval()
    with torch.no_grad():
        for weight in net.parameters():
            weight.mul_(3)
    cases = hf.TorchModel(net.requires_grad_(False)).ask(torch.rand(3, 12) + 0.1)
    exact = hf.KernelShap(samples=2**12).attribute(cases)
    rows: list[dict[str, object]] = []
    for samples in (100, 300, 1000):
        errors: dict[str, list[Tensor]] = {"holdfast KernelShap": [], "Captum KernelShap": []}
        for seed in range(10):
            torch.manual_seed(seed)
            errors["holdfast KernelShap"].append(hf.KernelShap(samples=samples, seed=seed).attribute(cases) - exact)
            found = captum.KernelShap(net).attribute(
                cases.x, target=cases.label, n_samples=samples, perturbations_per_eval=64
            )
            errors["Captum KernelShap"].append(found - exact)
        size = float(exact.square().mean().sqrt())
        row: dict[str, object] = {"samples": samples}
        rows.append(row | {name: float(torch.stack(e).square().mean().sqrt()) / size for name, e in errors.items()})
    show("kernel SHAP's error on a game of 12 features", rows)


# ---------------------------------------------------------------------- signed or absolute


def order(options: argparse.Namespace) -> None:
    """Both orders of each attribution, judged; on the digits that settings are chosen on."""
    cases = ask(argparse.Namespace(device=options.device, first=0), min(options.digits, 24))
    judges = {"AUC S̄r (higher is better)": hf.RobustnessRest, "AUC Sr (lower is better)": hf.RobustnessRelevant}
    signed: list[Any] = [
        hf.IntegratedGradients(),
        hf.ExpectedGradients(),
        hf.KernelShap(),
        hf.LeaveOneOut(),
        hf.DeepLift(),
        hf.Lrp(),
    ]
    rows: list[dict[str, object]] = []
    for explainer in signed:
        for absolute in (False, True):
            ranking = replace(explainer, absolute=absolute)(cases)
            row: dict[str, object] = {"explainer": type(explainer).__name__, "absolute": absolute}
            for title, kind in judges.items():
                curve = hf.trace(cases, ranking, kind(hf.MinNorm(steps=60)), (0.05, 0.15, 0.25, 0.35, 0.45))
                row[title] = float(curve.auc().mean())
            rows.append(row)
    show(f"signed or absolute order, {len(cases)} digits, judged by MinNorm(steps=60)", rows)


if __name__ == "__main__":
    main()
