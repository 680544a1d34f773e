// SPDX-License-Identifier: Apache-2.0
//
// Prints the type tags of one source file, one a line. It is compiled twice, as
// two files of one program, with UNIT 1 and 2. What is called "own" is each
// file's, though it has the same name in both.

#include <callback_registry.hpp>

#include <cstdio>
#include <string>
#include <vector>

struct global;
namespace scope {
struct Zone {
  struct inner {};
};
enum class choice {};
template <class T>
struct box {};
template <auto>
struct value {};
}  // namespace scope
typedef struct {
  int number;
} plain;

namespace {
struct own {
  char room[UNIT];
};
enum class own_choice {};
template <class T>
struct own_box {};
int own_variable;
void own_function() {}
template <int &>
struct reference {};
auto own_lambda = [] {};

#define SHOW(what, ...)                                      \
  std::printf("%d %s %s: %llx\n", UNIT, what, #__VA_ARGS__,  \
              static_cast<unsigned long long>(               \
                  std::uint64_t{cbr::type_tag<__VA_ARGS__>}))

void own_local(int) {
  struct own {
    struct inner {};
  };
  auto first = [] {};
  auto second = [] {};
  struct {
    int number;
  } unnamed;
  (void)unnamed;
  SHOW("own", void(own *));
  SHOW("own", own &(own::inner));
  SHOW("own", void(std::vector<own>));
  SHOW("own", void(decltype(first)));
  SHOW("own", void(decltype(second)));
  SHOW("own", void(decltype(unnamed) *));
}

// As in own_local, and yet another.
void own_local(long) {
  struct own {
    long number;
  };
  SHOW("own", int(own *));
  SHOW("own", const own *(int));
}
void own_local(short) {
  struct own {
    short number;
  };
  SHOW("own", int(int, own *));
  SHOW("own", void(own *, int));
}
}  // namespace

[[gnu::visibility("default")]] void show_1();

#if UNIT == 1
void show_1() {
#else
int main() {
  show_1();
#endif
  SHOW("shared", void(global *));
  SHOW("shared", void(scope::Zone &, scope::Zone::inner));
  SHOW("shared", void(scope::choice, plain *));
  SHOW("shared", std::string(const std::string &));
  SHOW("shared", void(scope::box<scope::Zone> *));
  SHOW("shared", void(scope::box<global> *));
  SHOW("shared", void(std::vector<scope::choice>));
  SHOW("shared", void(int (*)(global *), int (&)[3]));
  SHOW("shared", void(int scope::Zone::*));
  SHOW("shared", long(long));
  SHOW("own", int(own *));
  SHOW("own", own &());
  SHOW("own", void(const volatile own *const *));
  SHOW("own", void(own_choice));
  SHOW("own", void(own_box<int>));
  SHOW("own", void(scope::box<own> *));
  SHOW("own", void(std::vector<own *>));
  SHOW("own", void(scope::value<&own_variable>));
  SHOW("own", void(scope::value<own_function>));
  SHOW("own", void(reference<own_variable>));
  SHOW("own", void(decltype(own_lambda) *));
  SHOW("own", void(int (*)(own)));
  SHOW("own", void(own (&)[2]));
  SHOW("own", void(int own::*));
  own_local(1);
  own_local(1l);
  own_local(short{1});
}
