// SPDX-License-Identifier: Apache-2.0
// storm starts this thousands of times; no policy matches it.
int main() { return 0; }
