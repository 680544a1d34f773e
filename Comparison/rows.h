// SPDX-License-Identifier: Apache-2.0
#ifndef ROWS_H
#define ROWS_H

#include <string>
#include <vector>

// A row of the matrix: what is done, what has to happen, and what happens.
struct row {
  const char *title;
  const char *expected;
  std::string (*run)();  // "" as expected, else what happened instead
};

extern const std::vector<row> rows;

#endif
