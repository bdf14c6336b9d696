"""tidegate's controller: the pure core and everything that feeds it, applies it, records it and judges it."""
