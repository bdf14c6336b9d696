"""A policy that is fine, for tests that break it in one place; random clusters come from the core's tests."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "core"))

GOOD = """\
apiVersion: tidegate.dev/v1alpha1
kind: GPUPolicy
metadata: {name: production}
spec:
  mode: enforce
  timezone: Europe/Berlin
  pools:
  - name: h100
    nodes: {selector: {nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3}}
    capacity: {min: 8, max: 128, maxHourlyCost: 400}
    provisioner: {capacityBuffer: {}}
    waitWeight: 9
  teams:
  - name: inference
    namespaces: [serving, "serving-*"]
    priority: 100
    bounds: {floor: 70%, ceiling: 100%}
    schedule:
    - {name: nights, days: [Mon, Tue, Wed, Thu, Fri], from: "18:00", to: "08:00", bounds: {floor: 40%}}
    - {name: weekend, days: [Sat, Sun], bounds: {floor: 30%}}
  - name: dev
    namespaces: [dev]
    bounds: {floor: 0, ceiling: 50%}
    schedule:
    - {name: after-hours, days: daily, from: "18:00", to: "08:00", bounds: {ceiling: 20%}}
  lending: {enabled: true, notice: 10m, reclaim: [preemptible, lower-priority]}
  starvation: {maxWait: 15m}
  enforcement: {kueue: {cohort: gpus}}
  guards:
    cpuOnlyPods: {on: gpu-nodes, allow: 40%, action: evict}
    idleGpus: {below: 10%, for: 30m, action: alert}
    gpuFraction: {team: dev, max: 40%, action: evict}
  sharing: {mig: auto, timeSlicing: {maxReplicas: 4}}
  learning: {mode: shadow, quantile: [0.5, 0.98], maxHeadroom: 16}
  alerts: {slack: {channel: "#gpu", secretRef: tidegate-slack}, pagerduty: {secretRef: tidegate-pd, from: critical}}
"""
"""The example of the design, except that its gpuFraction names a team that exists."""


@pytest.fixture(scope="session")
def good() -> str:
    """The text of a policy that passes the check."""
    return GOOD
