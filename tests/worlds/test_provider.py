"""Where nodes come from: boot times, refusals, failures; expected by definition or by hand."""

from __future__ import annotations

import pytest

from controller.worlds.simulated import Boot, Cluster, Fault, FaultKind, Job, Provider, Shortage


def a_pool(provider: Provider, nodes: int = 0, now_s: int = 0) -> Cluster:
    cluster = Cluster(8, now_s)
    for i in range(nodes):
        cluster.add_node(f"n{i}", now_s)
    return cluster


def test_a_fixed_boot_time_is_the_same_for_every_node() -> None:
    assert {Boot(600).draw(seed, number) for seed in range(3) for number in range(50)} == {600}


def test_a_lognormal_boot_time_has_the_quantiles_that_were_asked_for() -> None:
    draws = sorted(Boot(300, 600).draw(7, number) for number in range(4000))
    assert draws[2000] == pytest.approx(300, rel=0.05)
    assert draws[3600] == pytest.approx(600, rel=0.07)
    # Lognormal: as far below the median as above it, in ratio. p10 = 300² / 600 = 150.
    assert draws[400] == pytest.approx(150, rel=0.07)


def test_boot_times_depend_on_seed_and_number_alone() -> None:
    boot = Boot(300, 600)
    assert [boot.draw(1, n) for n in (5, 3, 5)] == [boot.draw(1, 5), boot.draw(1, 3), boot.draw(1, 5)]
    assert [boot.draw(1, n) for n in range(20)] != [boot.draw(2, n) for n in range(20)]


def test_only_what_is_missing_is_asked_for_and_booting_nodes_count() -> None:
    provider = Provider("p", Boot(100))
    cluster = a_pool(provider, nodes=1)
    provider.set_target(3, 0)
    assert provider.reconcile(cluster) == (2, 2)
    cluster.advance(50)
    assert provider.reconcile(cluster) == (0, 0)
    assert len(cluster.nodes) == 3
    cluster.advance(100)
    assert all(node.up for node in cluster.nodes.values())


def test_a_stock_out_is_probed_after_3_then_6_minutes_and_forgotten_at_the_first_success() -> None:
    provider = Provider("p", Boot(100), shortages=(Shortage(0, 500),))
    cluster = a_pool(provider, nodes=2)
    provider.set_target(4, 0)
    asked = []
    for at in range(0, 1000, 20):
        cluster.advance(at)
        before = provider.refusals, len(cluster.nodes)
        provider.reconcile(cluster)
        if (provider.refusals, len(cluster.nodes)) != before:
            asked.append((at, len(cluster.nodes)))
        if at == 100:
            assert provider.obtainable_gpus(cluster) == 16
    assert asked == [(0, 2), (180, 2), (540, 4)]
    assert provider.refusals == 0
    assert provider.obtainable_gpus(cluster) is None


def test_a_partial_fill_gives_what_there_is_and_the_rest_later() -> None:
    provider = Provider("p", Boot(100), shortages=(Shortage(0, 100, nodes=1),))
    cluster = a_pool(provider)
    provider.set_target(3, 0)
    assert provider.reconcile(cluster) == (3, 1)
    cluster.advance(60)
    assert provider.reconcile(cluster) == (2, 0)
    cluster.advance(180)
    assert provider.reconcile(cluster) == (2, 2)


def test_a_busy_or_young_node_is_not_given_back() -> None:
    provider = Provider("p", Boot(100), min_node_life_s=600)
    cluster = a_pool(provider, nodes=2)
    cluster.submit(Job("j", "t", 0, 2000, 1, 1000))
    cluster.advance(10)
    assert "pod" in provider.give_back(cluster, "n0")
    assert "minimum node life" in provider.give_back(cluster, "n1")
    cluster.advance(600)
    assert provider.give_back(cluster, "n1") == ""
    assert provider.give_back(cluster, "n1") == ""
    assert sorted(cluster.nodes) == ["n0"]


def test_an_interrupted_node_takes_nothing_new_and_dies_when_its_notice_has_passed() -> None:
    provider = Provider("p", Boot(100), faults=(Fault(50, FaultKind.INTERRUPTED, 0, notice_s=120),))
    cluster = a_pool(provider, nodes=1)
    gang = cluster.submit(Job("j", "t", 0, 1000, 1, 4000))
    cluster.advance(50)
    provider.strike(cluster)
    cluster.submit(Job("k", "t", 50, 10, 1, 1000))
    assert provider.next_s() == 170
    cluster.advance(169)
    assert provider.strike(cluster) == []
    assert gang.running
    assert cluster.gangs["k"].started_at_s is None
    cluster.advance(170)
    assert provider.strike(cluster) == ["j"]
    assert cluster.nodes == {}
    cluster.check()


def test_a_node_that_never_advertises_its_gpu_is_counted_on_for_15_minutes_and_no_longer() -> None:
    """Asked at 0, joins at 80: counted on until 980, then another is asked for, once (CASES.md K1)."""
    provider = Provider("p", Boot(100), faults=(Fault(0, FaultKind.NO_GPU),))
    cluster = a_pool(provider)
    provider.strike(cluster)
    provider.set_target(1, 0)
    asks = []
    for at in range(0, 1500, 20):
        cluster.advance(at)
        if provider.reconcile(cluster)[1]:
            asks.append(at)
    assert asks == [0, 980]
    assert [node.up for node in cluster.nodes.values()] == [False, True]


def test_the_lead_is_the_p90_of_what_was_seen() -> None:
    provider = Provider("p", Boot(300))
    assert provider.lead_s() == 300
    provider.leads = list(range(10, 110, 10))
    assert provider.lead_s() == 90


def test_left_alone_a_pool_scales_as_clusters_do() -> None:
    """A node for what is pending, back after ten idle minutes, at most the maximum."""
    provider = Provider("p", Boot(100))
    cluster = a_pool(provider)
    for i in range(3):
        cluster.submit(Job(f"j{i}", "t", 0, 200, 1, 8000))
    seen = {}
    for at in range(0, 2000, 100):
        cluster.advance(at)
        cluster.admit()
        provider.react(cluster, 2)
        seen[at] = len(cluster.nodes)
    # Two run from 100 to 300, the third from 300 to 500; the other node idles from 300, that one from 500.
    assert (seen[0], seen[800], seen[900], seen[1000], seen[1100]) == (2, 2, 1, 1, 0)
    assert cluster.account.done == 3
