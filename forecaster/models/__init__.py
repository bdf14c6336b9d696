"""The experts. Each gives, for a decision at each row, the log of where demand will be; residuals make quantiles of it.

All work on ``log(demand + ε)``, so that a forecast scales with its team, and ε keeps an idle team finite.
"""
