// SPDX-License-Identifier: Apache-2.0
// Started 50,000 times by storm, wanted by no policy.
int main() { return 0; }
