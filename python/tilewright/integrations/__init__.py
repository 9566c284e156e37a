"""Other libraries on Tilewright's kernels. `import tilewright` imports none of them."""
