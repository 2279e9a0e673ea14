"""Computes, and reads nothing."""
print(sum(i * i % 7 for i in range(12_000_000)))
