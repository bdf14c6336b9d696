"""Judging: the production code on recorded time, against baselines that were given every chance."""
