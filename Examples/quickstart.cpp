// SPDX-License-Identifier: Apache-2.0
// c++ -std=c++17 quickstart.cpp $(pkg-config --cflags --libs callbackregistry)
#include <callback_registry.hpp>
#include <cstdio>

int main() try {
  cbr::registry registry;
  cbr::check(registry.open("quickstart.history"));

  cbr::registration greeter;  // a wrapper; the token in it is a number
  std::string greeting = "Good morning";
  cbr::check(greeter.bind<std::size_t(const char *)>(
      registry, "greeter", [greeting](const char *name) {
        std::printf("%s, %s!\n", greeting.c_str(), name);
        return greeting.size();
      }));

  auto first = cbr::call<std::size_t(const char *)>(greeter, "world");
  if (first.value_or(0) != greeting.size()) return 1;

  // After this, nothing is running and nothing will: the lambda is gone.
  cbr::check(greeter.end());

  // Too late: refused, and recorded.
  auto late = cbr::call<std::size_t(const char *)>(greeter, "world");
  if (late || late.status != CBR_E_STALE) return 2;

  std::string life = cbr::explain(greeter);
  std::fputs(life.c_str(), stdout);
  cbr::check(registry.close());
  return life.empty() ? 3 : 0;
} catch (const cbr::error &error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 4;
}
