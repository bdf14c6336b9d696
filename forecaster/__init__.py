"""Demand forecasts: quantiles of the maximum demand in windows ahead, per team and for a pool's total.

Arrays in, arrays out. Everything that forecasts for a decision at a row reads rows before it and nothing else.
"""
