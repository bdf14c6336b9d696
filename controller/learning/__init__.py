"""Learning from a pool's own past: the tuned rule, the forecast that may replace it, the optimum that bounds both."""
