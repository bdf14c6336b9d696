"""The node agent: applies the GPU layouts that the core's partition stage planned."""
