"""A policy written out as a file reads back as itself, whatever its fields say."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from controller.core import policy as core
from controller.core.policy import Policy
from controller.core.quantities import Amount
from controller.resources.parse import parse_policy
from controller.resources.policy_text import policy_text
from controller.resources.yaml_text import read_yaml

TEMPLATES = sorted((Path(__file__).resolve().parents[2] / "controller" / "resources" / "templates").glob("*.yaml"))
names = st.from_regex(r"[a-z0-9]([-a-z0-9.]{0,8}[a-z0-9])?", fullmatch=True)
percents = st.integers(0, 100_000).map(lambda n: n * 10)
spans = st.integers(0, 366 * 86_400)
guard_actions = st.sampled_from(core.GuardAction)
# Three floors of at most 33 % or 33 of 100 GPUs fit together, and lie below any of these ceilings.
floors = st.integers(0, 33_000).map(lambda n: Amount(ppm=n * 10)) | st.integers(0, 33).map(
    lambda n: Amount(milli_gpus=n * 1000)
)
ceilings = st.integers(34_000, 100_000).map(lambda n: Amount(ppm=n * 10)) | st.integers(340, 10_000).map(
    lambda n: Amount(milli_gpus=n * 1000)
)


@st.composite
def windows(draw: st.DrawFn) -> core.Window:
    floor, ceiling = draw(st.none() | floors), draw(st.none() | ceilings)
    days = draw(st.frozensets(st.integers(0, 6), min_size=1))
    return core.Window(
        draw(names),
        days,
        draw(st.integers(0, 1439)),
        draw(st.integers(0, 1440)),
        floor,
        draw(ceilings) if floor is None and ceiling is None else ceiling,
    )


@st.composite
def pools(draw: st.DrawFn, name: str) -> core.Pool:
    most = draw(st.integers(100, 1000))
    limits = core.PoolLimits(
        draw(st.integers(0, most)),
        most,
        draw(st.none() | st.integers(1, 10**15)),
        draw(spans),
        draw(st.none() | st.integers(1, 9)),
    )
    return core.Pool(
        name,
        (("pool", name), *draw(st.sampled_from([(), (("true", "no"),), (("zone", "1e3"),)]))),
        limits,
        draw(st.sampled_from(["capacityBuffer", "karpenterStatic", "eks", "gke", "aks", "none"])),
        draw(st.integers(1, 1000)),
        draw(st.integers(1, 100)),
    )


@st.composite
def teams(draw: st.DrawFn, name: str, of: tuple[str, ...]) -> core.Team:
    return core.Team(
        name,
        (name, *draw(st.lists(st.text(min_size=1).map(lambda text: f"{name}/{text}"), max_size=2))),
        draw(st.integers(-(10**6), 10**6)),
        draw(st.integers(1, 10**6)),
        core.Bounds(draw(floors), draw(ceilings)),
        tuple(draw(st.lists(windows(), max_size=3, unique_by=lambda window: window.name))),
        tuple(sorted(draw(st.sets(st.sampled_from(of))))),
        draw(st.booleans()),
    )


def guards(of: list[str]) -> st.SearchStrategy[core.Guards]:
    cpu = st.builds(core.CpuOnlyPods, percents, guard_actions, spans, st.lists(names).map(tuple))
    idle = st.builds(core.IdleGpus, percents, spans, guard_actions)
    fraction = st.builds(core.GpuFraction, st.sampled_from(of), percents, guard_actions)
    return st.builds(core.Guards, st.none() | cpu, st.none() | idle, st.lists(fraction, max_size=2).map(tuple))


@st.composite
def routes(draw: st.DrawFn) -> tuple[core.AlertRoute, ...]:
    def route(kind: str, secret: str, **settings: str) -> core.AlertRoute:
        severity = draw(st.sampled_from(["info", "warning", "critical"]))
        return core.AlertRoute(kind, secret, severity, tuple(settings.items()))

    found = [
        route("alertmanager", draw(st.just("") | names), url="http://a:9093"),
        route("pagerduty", draw(names)),
        route("slack", draw(names), channel=draw(st.text(min_size=1))),
        route("webhook", draw(st.just("") | names), url="https://w/x?y=1"),
    ]
    return tuple(each for each in found if draw(st.booleans()))


@st.composite
def any_policies(draw: st.DrawFn) -> Policy:
    of = sorted(draw(st.sets(names, min_size=1, max_size=2)))
    owners = sorted(draw(st.sets(names, min_size=1, max_size=3)))
    low, high = sorted(draw(st.tuples(st.integers(1, 999), st.integers(1, 999))))
    return Policy(
        draw(names),
        draw(st.sampled_from(core.Mode)),
        draw(st.sampled_from(["UTC", "Europe/Berlin", "America/St_Johns"])),
        tuple(draw(pools(name)) for name in of),
        tuple(draw(teams(name, tuple(of))) for name in owners),
        core.Lending(
            draw(st.booleans()),
            draw(spans),
            tuple(draw(st.lists(st.sampled_from(core.Reclaimable), unique=True))),
            draw(st.booleans()),
        ),
        core.Starvation(draw(spans)),
        draw(guards(owners)),
        core.Sharing(draw(st.booleans()), draw(st.integers(1, 64))),
        core.Learning(draw(st.sampled_from(core.LearningMode)), low, high, draw(st.none() | st.integers(0, 10**6))),
        draw(
            st.sampled_from([core.Enforcement(), core.Enforcement("resourceQuota"), core.Enforcement("kueue", "gpus")])
        ),
        draw(routes()),
    )


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(any_policies())
def test_what_is_written_reads_back_as_the_same_policy(policy: Policy) -> None:
    assert parse_policy(policy_text(policy)) == policy


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)
def test_templates_survive_being_written_out(path: Path) -> None:
    policy = parse_policy(path.read_text("utf-8"))
    assert parse_policy(policy_text(policy)) == policy


@pytest.mark.parametrize("text", ["dév", "a\x85b", "a\u2028b", "\ufeff", "no", "1e3", "18:00", "#gpu", " a ", "😀"])
def test_text_that_yaml_reads_in_its_own_way(text: str, good: str) -> None:
    policy = Policy("p", core.Mode.OBSERVE, "UTC", parse_policy(good).pools, (core.Team("a", (text,)),))
    assert parse_policy(policy_text(policy)).teams[0].namespaces == (text,)


def test_defaults_are_written_out_in_the_words_of_the_reference(good: str) -> None:
    document, _ = read_yaml(policy_text(parse_policy(good)), "written")
    spec = document["spec"]
    # The file says none of these; the reference says what they are then.
    assert (spec["pools"][0]["minNodeLife"], spec["pools"][0]["gpusPerNode"]) == ("10m", 8)
    assert (spec["lending"]["forecastAware"], spec["alerts"]["slack"]["from"]) == (True, "warning")
    dev, inference = spec["teams"]
    assert (dev["priority"], dev["weight"], dev["preemptible"]) == (0, 1, False)
    # And these are as they stand in the file.
    assert inference["bounds"] == {"floor": "70%", "ceiling": "100%"}
    assert inference["schedule"][1] == {
        "name": "weekend",
        "days": "weekends",
        "from": "00:00",
        "to": "24:00",
        "bounds": {"floor": "30%"},
    }


@pytest.mark.parametrize("amount", [Amount(milli_gpus=500), Amount(ppm=333_333)], ids=["half a GPU", "six digits"])
def test_what_the_language_cannot_say_is_not_rounded(amount: Amount, good: str) -> None:
    team = core.Team("a", ("a",), bounds=core.Bounds(amount))
    policy = Policy("p", core.Mode.OBSERVE, "UTC", parse_policy(good).pools, (team,))
    with pytest.raises(ValueError, match=r"whole GPUs|three decimals"):
        policy_text(policy)
