"""The simulated pool against schedules worked out by hand, and laws that hold on any input."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.worlds.simulated import Cluster, Gang, Job, gang_shape
from controller.worlds.simulated.cohort import CohortCluster
from controller.worlds.simulated.packing import Bins


def a_job(name: str, submit_s: int, duration_s: int | None, gpus: int, team: str = "t", **more: object) -> Job:
    pods, each = gang_shape(gpus * 1000, 8)
    return Job(name, team, submit_s, duration_s, pods, each, **more)  # type: ignore[arg-type]


def run(cluster: Cluster, jobs: list[Job], until_s: int) -> dict[str, Gang]:
    """Submit each job at its second; return all gangs, those that are done included."""
    gangs = {}
    for job in sorted(jobs, key=lambda job: job.submit_s):
        cluster.advance(job.submit_s)
        gangs[job.name] = cluster.submit(job)
    cluster.advance(until_s)
    cluster.admit()
    cluster.check()
    return gangs


def two_nodes(**more: object) -> Cluster:
    cluster = Cluster(8, **more)  # type: ignore[arg-type]
    cluster.add_node("a", 0)
    cluster.add_node("b", 0)
    return cluster


def test_ten_jobs_start_when_a_person_with_pencil_and_paper_says() -> None:
    """Two nodes of 8, first come first served, whoever does not fit is passed by.

    j1 fills a, j2 and j4 fill b. At 50 j2 leaves 4 on b: j3 (two whole nodes) cannot, j5 takes 1; j6 the other 3 at 60.
    At 80 j4 leaves: j7 starts. At 90 j6 and j7 leave b empty: j8 takes 6 of it. At 100 j1 leaves a: j3 still lacks b,
    so j9 takes a; j10 takes the last 2 of b at 110. At 130 j8 leaves, both nodes are whole: j3 starts.
    """
    jobs = [
        a_job("j01", 0, 100, 8),
        a_job("j02", 0, 50, 4),
        a_job("j03", 10, 100, 16),
        a_job("j04", 20, 60, 4),
        a_job("j05", 30, 20, 1),
        a_job("j06", 60, 30, 3),
        a_job("j07", 65, 10, 2),
        a_job("j08", 85, 40, 6),
        a_job("j09", 95, 20, 8),
        a_job("j10", 110, 10, 2),
    ]
    cluster = two_nodes()
    gangs = run(cluster, jobs, 230)
    starts = {name: gang.first_start_s for name, gang in gangs.items()}
    assert starts == {
        "j01": 0,
        "j02": 0,
        "j03": 130,
        "j04": 20,
        "j05": 50,
        "j06": 60,
        "j07": 80,
        "j08": 90,
        "j09": 100,
        "j10": 110,
    }
    # 16·120 + 1·20 + 2·15 + 6·5 + 8·5 GPU-seconds of waiting; 800+200+1600+240+20+90+20+240+160+20 of work.
    assert cluster.account.waiting == 2_040_000
    assert cluster.account.work == cluster.account.busy == 3_390_000
    assert cluster.account.up == 16 * 230 * 1000
    assert cluster.account.done == 10


@pytest.mark.parametrize(
    ("gpus", "shape"),
    [
        (1, (1, 1000)),
        (8, (1, 8000)),
        (16, (2, 8000)),
        (12, (2, 6000)),
        (9, (3, 3000)),
        (11, (11, 1000)),
        (20, (4, 5000)),
    ],
)
def test_a_gang_is_cut_into_full_nodes_else_into_equal_pods_as_large_as_divide_it(
    gpus: int, shape: tuple[int, int]
) -> None:
    assert gang_shape(gpus * 1000, 8) == shape


def test_a_part_of_a_gpu_stays_a_part() -> None:
    assert gang_shape(500, 8) == (1, 500)


def test_a_pod_goes_where_it_leaves_least() -> None:
    bins = Bins()
    for name, free in (("a", 8000), ("b", 3000), ("c", 4000)):
        bins.add(name, free)
    assert bins.place(1, 3000) == ("b",)
    assert bins.place(2, 4000) == ("c", "a")
    assert bins.place(3, 4000) == ("c", "a", "a")
    assert bins.place(4, 4000) is None
    bins.remove("b")
    assert bins.total == 12_000


def test_higher_priority_is_looked_at_first_and_then_the_earlier() -> None:
    cluster = two_nodes()
    gangs = run(
        cluster,
        [
            a_job("full", 0, 100, 16),
            a_job("early", 10, 50, 16),
            a_job("later", 20, 50, 16),
            a_job("urgent", 30, 50, 16, priority=5),
        ],
        400,
    )
    assert [gangs[name].first_start_s for name in ("urgent", "early", "later")] == [100, 150, 200]


def test_a_quota_bounds_what_a_team_is_admitted_to_and_holds_up_nobody_else() -> None:
    cluster = two_nodes()
    cluster.set_quota("t", 8000)
    gangs = run(cluster, [a_job("one", 0, 100, 6), a_job("two", 0, 100, 4), a_job("other", 0, 100, 8, "u")], 300)
    assert {name: gang.first_start_s for name, gang in gangs.items()} == {"one": 0, "two": 100, "other": 0}


def test_the_preemptible_part_of_a_quota_is_closed_to_other_work() -> None:
    cluster = two_nodes()
    cluster.set_quota("t", 8000, 6000)
    firm, loose = a_job("firm", 0, 100, 4), a_job("loose", 0, 100, 4, preemptible=True)
    gangs = run(cluster, [firm, loose, a_job("small", 0, 100, 2)], 50)
    assert {name: gang.first_start_s for name, gang in gangs.items()} == {"firm": None, "loose": 0, "small": 0}


def test_an_evicted_gang_loses_what_it_did_since_its_last_checkpoint_and_ends_later_by_as_much() -> None:
    cluster = two_nodes()
    job = a_job("j", 0, 100, 8, preemptible=True, checkpoint_s=30)
    gang = cluster.submit(job)
    cluster.advance(70)
    cluster.evict("j")
    assert (cluster.account.lost, cluster.account.work, cluster.account.evictions) == (10 * 8000, 60 * 8000, 1)
    cluster.set_quota("t", 0)
    cluster.advance(200)
    assert gang.started_at_s is None
    cluster.set_quota("t", 8000)
    cluster.advance(239)
    assert gang.started_at_s == 200
    assert gang.end_s == 240
    cluster.advance(240)
    assert cluster.account.done == 1
    cluster.check()


def test_without_checkpoints_all_of_it_is_lost() -> None:
    cluster = two_nodes()
    cluster.submit(a_job("j", 0, 100, 8))
    cluster.advance(70)
    cluster.evict("j")
    assert cluster.account.lost == 70 * 8000
    cluster.check()


def test_a_node_that_goes_takes_its_gangs_back_to_the_queue_whole() -> None:
    cluster = two_nodes()
    gang = cluster.submit(a_job("wide", 0, 100, 16))
    small = cluster.submit(a_job("small", 5, None, 1))
    cluster.advance(40)
    assert cluster.remove_node("b") == ["wide"]
    cluster.admit()
    assert not gang.running
    assert small.running
    assert small.nodes == ("a",)
    cluster.check()


def test_a_cordoned_node_takes_nothing_new_and_keeps_what_it_has() -> None:
    cluster = two_nodes()
    first = cluster.submit(a_job("first", 0, 100, 4))
    cluster.admit()
    cluster.cordon("a")
    second = cluster.submit(a_job("second", 0, 100, 4))
    cluster.advance(1)
    assert first.nodes == ("a",)
    assert second.nodes == ("b",)
    cluster.uncordon("a")
    third = cluster.submit(a_job("third", 1, 100, 4))
    cluster.advance(2)
    assert third.nodes == ("a",)
    cluster.check()


def test_a_withdrawn_replica_counts_as_work_not_as_loss() -> None:
    cluster = two_nodes()
    cluster.submit(a_job("replica", 0, None, 2))
    cluster.advance(30)
    cluster.withdraw("replica")
    cluster.advance(60)
    assert (cluster.account.work, cluster.account.lost, cluster.busy) == (60_000, 0, 0)
    cluster.check()


def test_in_a_cohort_the_owner_comes_first_when_something_is_freed_but_nothing_is_taken_back() -> None:
    """u borrows a's 8 until they drain at 100; then t's two, within its quota, go before u's older one."""
    cluster = CohortCluster(8, 0, nominal={"t": 8000, "u": 8000})
    cluster.add_node("a", 0)
    cluster.add_node("b", 0)
    jobs = [
        a_job("u1", 0, 100, 8, "u"),
        a_job("u2", 0, 100, 8, "u"),
        a_job("u3", 10, 100, 16, "u"),
        a_job("u4", 20, 100, 8, "u"),
        a_job("t1", 30, 100, 8, "t"),
    ]
    gangs = run(cluster, jobs, 150)
    starts = {name: gang.first_start_s for name, gang in gangs.items()}
    assert starts == {"u1": 0, "u2": 0, "u3": None, "u4": 100, "t1": 100}
    assert cluster.account.evictions == 0


SOME_JOBS = st.lists(
    st.tuples(st.integers(0, 300), st.integers(1, 200), st.integers(1, 20), st.booleans(), st.sampled_from("tuv")),
    max_size=25,
)
MOVES = st.lists(st.tuples(st.integers(0, 400), st.sampled_from(["evict", "lose", "add", "quota"])), max_size=8)


def play(jobs: list[tuple[int, int, int, bool, str]], moves: list[tuple[int, str]], save_at: int | None) -> Cluster:
    """Run jobs and moves in the order of time; at ``save_at`` go on from a dump."""
    cluster = two_nodes()
    todo = [(at, 0, i, ("job", i)) for i, (at, *_) in enumerate(jobs)] + [
        (at, 1, i, (what, i)) for i, (at, what) in enumerate(moves)
    ]
    todo += [] if save_at is None else [(save_at, 2, 0, ("save", 0))]
    for at, _, _, (what, i) in sorted(todo):
        cluster.advance(at)
        running = sorted(name for name, gang in cluster.gangs.items() if gang.running)
        if what == "job":
            _, duration, gpus, loose, team = jobs[i]
            cluster.submit(a_job(f"j{i:02}", at, duration, gpus, team, preemptible=loose, checkpoint_s=40))
        elif what == "evict" and running:
            cluster.evict(running[0])
        elif what == "lose" and cluster.nodes:
            cluster.remove_node(min(cluster.nodes))
        elif what == "add":
            cluster.add_node(f"n{i}", at + 25)
        elif what == "quota":
            cluster.set_quota("t", 6000, 2000)
        elif what == "save":
            cluster = Cluster.load(json.loads(json.dumps(cluster.dump())), 8)
        cluster.check()
    cluster.advance(1000)
    cluster.check()
    return cluster


@given(SOME_JOBS, MOVES)
@settings(deadline=None, max_examples=80)
def test_gpu_seconds_are_conserved_whatever_happens(
    jobs: list[tuple[int, int, int, bool, str]], moves: list[tuple[int, str]]
) -> None:
    cluster = play(jobs, moves, None)
    done = {f"j{i:02}" for i in range(len(jobs))} - set(cluster.gangs)
    least = sum(duration * gpus for i, (_, duration, gpus, _, _) in enumerate(jobs) if f"j{i:02}" in done)
    assert cluster.account.work >= least * 1000


@given(SOME_JOBS, MOVES, st.integers(0, 500))
@settings(deadline=None, max_examples=60)
def test_going_on_from_a_kept_state_is_going_on(
    jobs: list[tuple[int, int, int, bool, str]], moves: list[tuple[int, str]], save_at: int
) -> None:
    straight, resumed = play(jobs, moves, None), play(jobs, moves, save_at)
    assert json.dumps(straight.dump(), sort_keys=True) == json.dumps(resumed.dump(), sort_keys=True)


def test_a_name_is_taken_once() -> None:
    cluster = two_nodes()
    cluster.submit(a_job("j", 0, 10, 1))
    with pytest.raises(ValueError, match="j is here already"):
        cluster.submit(a_job("j", 0, 10, 1))
