"""One large cluster twice: as the core's snapshot, and as the LIST of pods that an API server would send for it."""

from __future__ import annotations

from typing import Any

import orjson

from controller.core.forecast import TOTAL, Forecasts, SeriesForecast, WindowForecast
from controller.core.policy import Bounds, CpuOnlyPods, Guards, IdleGpus, Mode, Policy, Pool, PoolLimits, Team
from controller.core.quantities import Amount
from controller.core.snapshot import Node, PoolObservation, ShareInForce, Snapshot, Workload, WorkloadState

NOW_S = 1_780_308_000
NODES, PODS, TEAMS, GPUS = 1_000, 10_000, 200, 8
RUNNING = 7_200


def a_policy() -> Policy:
    """200 teams with floors of 0.4 % (80 % in all), three priorities, guards on."""
    pool = Pool("h100", (("gpu", "h100"),), PoolLimits(0, NODES * GPUS))
    teams = tuple(
        Team(
            f"team-{i:03}",
            (f"team-{i:03}", f"team-{i:03}-*"),
            priority=i % 3 * 10,
            weight=1 + i % 4,
            bounds=Bounds(Amount(ppm=4_000), Amount(ppm=20_000)),
            preemptible=i % 5 == 0,
        )
        for i in range(TEAMS)
    )
    guards = Guards(CpuOnlyPods(400_000), IdleGpus(100_000, 1_800))
    return Policy("large", Mode.ENFORCE, "Europe/Berlin", (pool,), teams, guards=guards)


def namespace(number: int) -> str:
    """Pods are spread unevenly: low-numbered teams have more, so that there is lending and want."""
    team = number * number % 997 % TEAMS if number % 3 else number % 40
    return f"team-{team:03}" if number % 2 else f"team-{team:03}-batch"


def a_snapshot() -> Snapshot:
    """7,200 one-GPU pods run on 900 nodes, 100 nodes are idle, 2,800 pods wait."""
    nodes = tuple(
        Node(
            f"node-{i:04}",
            "h100",
            GPUS,
            GPUS * 1000,
            NOW_S - 86_400,
            NOW_S - 86_300,
            NOW_S - 86_100,
            idle_since_s=NOW_S - 60 - i if i >= RUNNING // GPUS else None,
            cpu_milli=192_000,
            memory_mib=2_000_000,
        )
        for i in range(NODES)
    )
    pool = PoolObservation("h100", GPUS, 900, target_nodes=NODES)
    shares = tuple(ShareInForce("h100", f"team-{i:03}", 40_000) for i in range(TEAMS))
    return Snapshot("large", NOW_S, (pool,), nodes, tuple(_work(i) for i in range(PODS)), shares)


def _work(number: int) -> Workload:
    running = number < RUNNING
    since = NOW_S - 100 - number * 37 % 80_000
    return Workload(
        f"pod-{number:05}",
        namespace(number),
        "h100",
        1,
        1000,
        WorkloadState.RUNNING if running else WorkloadState.PENDING,
        since,
        started_at_s=since if running else None,
        priority=number % 4,
        preemptible=number % 7 == 0,
        nodes=(f"node-{number // GPUS:04}",) if running else (),
        cpu_milli_per_pod=12_000,
        memory_mib_per_pod=100_000,
        gpu_busy_ppm=number * 7919 % 1_000_000 if running else None,
        idle_since_s=NOW_S - 3_600 if running and number % 50 == 0 else None,
    )


def forecasts() -> Forecasts:
    """A total and a series for each team, as a tick has them."""
    windows = (
        WindowForecast(900, 1800, (100, 500, 700, 800, 900, 950, 980), tuple(n * 1000 for n in range(30, 37))),
        WindowForecast(900, 4500, (100, 500, 700, 800, 900, 950, 980), tuple(n * 1000 for n in range(35, 42))),
    )
    total = WindowForecast(900, 1800, (500, 900), (8_000_000, 9_000_000))
    series = [SeriesForecast("h100", f"team-{i:03}", NOW_S - 60, windows) for i in range(TEAMS)]
    return Forecasts((*series, SeriesForecast("h100", TOTAL, NOW_S - 60, (total,))))


def pod_list() -> bytes:
    """The LIST of the same pods as the API server renders it, with all that an ordinary training pod carries."""
    items = [a_pod(i) for i in range(PODS)]
    return orjson.dumps(
        {"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "98123771"}, "items": items}
    )


def a_pod(number: int) -> dict[str, Any]:
    """One pod with the fields that ``kubectl get pod -o json`` shows, managed fields left out."""
    running, uid = number < RUNNING, f"{number:08x}-7d2b-4f7c-9a55-{number * 65_537:012x}"
    spec = _spec(number)
    if running:
        spec["nodeName"] = f"node-{number // GPUS:04}"
    return {
        "metadata": _metadata(number, uid),
        "spec": spec,
        "status": _status(number, uid) if running else _waiting(),
    }


def _metadata(number: int, uid: str) -> dict[str, Any]:
    job = f"pod-{number:05}"
    return {
        "name": f"{job}-x7k2p",
        "generateName": f"{job}-",
        "namespace": namespace(number),
        "uid": uid,
        "resourceVersion": str(90_000_000 + number),
        "creationTimestamp": "2026-06-01T09:12:44Z",
        "labels": {
            "app.kubernetes.io/name": "trainer",
            "app.kubernetes.io/part-of": "research",
            "batch.kubernetes.io/controller-uid": uid,
            "batch.kubernetes.io/job-name": job,
            "batch.kubernetes.io/job-completion-index": "0",
            "controller-uid": uid,
            "job-name": job,
            "kueue.x-k8s.io/queue-name": namespace(number),
            "kueue.x-k8s.io/podset": "main",
        },
        "annotations": {
            "batch.kubernetes.io/job-completion-index": "0",
            "kueue.x-k8s.io/workload": f"job-{job}-3f1c9",
            "cni.projectcalico.org/podIP": f"10.{number % 250}.{number // 250}.7/32",
            "prometheus.io/scrape": "true",
            "prometheus.io/port": "9400",
        },
        "ownerReferences": [
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "name": job,
                "uid": uid,
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
        "finalizers": ["batch.kubernetes.io/job-tracking"],
    }


def _spec(number: int) -> dict[str, Any]:
    volumes = [
        {"name": "data", "persistentVolumeClaim": {"claimName": f"data-{number % 40}"}},
        {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "64Gi"}},
        {"name": "config", "configMap": {"name": "trainer-config", "defaultMode": 420}},
        {
            "name": "kube-api-access-8xk2p",
            "projected": {
                "sources": [
                    {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                    {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
                    {
                        "downwardAPI": {
                            "items": [
                                {
                                    "path": "namespace",
                                    "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"},
                                }
                            ]
                        }
                    },
                ],
                "defaultMode": 420,
            },
        },
    ]
    return {
        "volumes": volumes,
        "containers": [_container(number)],
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "serviceAccountName": "default",
        "serviceAccount": "default",
        "securityContext": {"fsGroup": 1000, "runAsUser": 1000, "runAsNonRoot": True},
        "schedulerName": "default-scheduler",
        "tolerations": [
            {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
            {
                "key": "node.kubernetes.io/not-ready",
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": 300,
            },
            {
                "key": "node.kubernetes.io/unreachable",
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": 300,
            },
        ],
        "priorityClassName": "training",
        "priority": 1000 + number % 4,
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
        "nodeSelector": {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"},
    }


def _container(number: int) -> dict[str, Any]:
    names = ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "NCCL_DEBUG", "HF_HOME", "OMP_NUM_THREADS", "RUN_ID")
    resources = {"cpu": "12", "memory": "100000Mi", "nvidia.com/gpu": "1"}
    return {
        "name": "trainer",
        "image": "registry.example.com/research/trainer:2026.05.3",
        "command": ["python", "-m", "trainer.main"],
        "args": ["--config", "/etc/trainer/config.yaml", "--run", f"run-{number}", "--resume", "auto"],
        "env": [
            *({"name": name, "value": f"value-{number}"} for name in names),
            {
                "name": "POD_IP",
                "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "status.podIP"}},
            },
            {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "trainer", "key": "token"}}},
        ],
        "resources": {"limits": resources, "requests": resources},
        "volumeMounts": [
            {"name": "data", "mountPath": "/data"},
            {"name": "shm", "mountPath": "/dev/shm"},
            {"name": "config", "mountPath": "/etc/trainer", "readOnly": True},
            {
                "name": "kube-api-access-8xk2p",
                "readOnly": True,
                "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
            },
        ],
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }


def _status(number: int, uid: str) -> dict[str, Any]:
    kinds = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    address = f"10.{number % 250}.{number // 250}.7"
    digest = f"{number:064x}"
    return {
        "phase": "Running",
        "conditions": [
            {
                "type": kind,
                "status": "True",
                "observedGeneration": 1,
                "lastProbeTime": None,
                "lastTransitionTime": "2026-06-01T09:13:02Z",
            }
            for kind in kinds
        ],
        "hostIP": "10.0.3.17",
        "hostIPs": [{"ip": "10.0.3.17"}],
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": "2026-06-01T09:12:58Z",
        "containerStatuses": [
            {
                "name": "trainer",
                "state": {"running": {"startedAt": "2026-06-01T09:13:01Z"}},
                "lastState": {},
                "ready": True,
                "restartCount": 0,
                "image": "registry.example.com/research/trainer:2026.05.3",
                "imageID": f"registry.example.com/research/trainer@sha256:{digest}",
                "containerID": f"containerd://{digest}",
                "started": True,
                "resources": {"limits": {"cpu": "12", "nvidia.com/gpu": "1"}},
            }
        ],
        "qosClass": "Guaranteed",
    }


def _waiting() -> dict[str, Any]:
    message = "0/1000 nodes are available: 1000 Insufficient nvidia.com/gpu. preemption: no victims found."
    return {
        "phase": "Pending",
        "conditions": [
            {
                "type": "PodScheduled",
                "status": "False",
                "lastProbeTime": None,
                "lastTransitionTime": "2026-06-01T09:12:44Z",
                "reason": "Unschedulable",
                "message": message,
            }
        ],
        "qosClass": "Guaranteed",
    }
