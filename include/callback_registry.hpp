// SPDX-License-Identifier: Apache-2.0
//
// callback_registry.hpp - the C++17 layer over callback_registry.h.
//
//   cbr::registry registry;
//   cbr::check(registry.open("app.history"));
//   cbr::registration progress;
//   cbr::check(progress.bind<void(double)>(
//       registry, "progress", [&](double done) { bar.show(done); }));
//
//   auto shown = cbr::call<void(double)>(progress, 0.5);
//   if (!shown) log(cbr_status_name(shown.status));
//
// RULES FOR THE WHOLE HEADER
//
// Statuses.  Functions answer cbr_status, or an outcome that carries one, as
//   in C. Nothing throws but what you ask to (cbr::check), your own callables
//   and std::string.
// Exceptions.  One that leaves a callable passes through call and guard to
//   the caller; the call is left on the way. One that leaves a handler of a
//   signal is kept, ends the emission, and is thrown out of signal::emit: it
//   never passes through the library. What a queue calls, a session's delegate
//   and a completion have nobody to catch one: there it ends the program
//   (std::terminate), and so does pthread_exit.
// Signatures.  R(A...) names the callable as the caller sees it. Underneath it
//   is a function R (*)(void *context, A...), and its signature makes a type
//   tag: a call with another signature is CBR_E_INTERFACE. See type_tag for
//   what is another one.
// Wrappers.  registry, owner, living, registration, slot, signal, connection,
//   queue, delegate, session, completion and thunk own one handle each, can be
//   moved (but for living) and not copied, and convert to the handle, so that
//   every function of the C header takes them. Like std::unique_ptr, a wrapper
//   is not changed by one thread while another uses it; the handle that it
//   holds is for any, and so are a signal's connect and emit, a slot's set,
//   token and call, and a queue's post.
// Destructors.  They end their handle and wait without limit for what is
//   running on other threads. A destructor cannot say CBR_DEFERRED or
//   CBR_E_WOULD_DEADLOCK: where the calls must be over, ask end() first. Those
//   of a session, which cancels it, and of a delegate do not wait, for what is
//   told may be told on a queue that this very thread runs.
// Since.  Everything here is since 0.1.0.
#ifndef CALLBACK_REGISTRY_HPP
#define CALLBACK_REGISTRY_HPP

#include "callback_registry.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <utility>

#if defined(__GLIBCXX__) && defined(__cpp_exceptions)
#include <cxxabi.h>
#endif

namespace cbr {

// ------------------------------------------------------------- Errors --

#if defined(__cpp_exceptions)
// What cbr::check throws: a status, and what cbr_last_error said of it.
class error : public std::runtime_error {
 public:
  explicit error(cbr_status status)
      : std::runtime_error(std::string(cbr_status_name(status)) + ": " +
                           cbr_last_error()),
        status_(status) {}

  cbr_status status() const noexcept { return status_; }

 private:
  cbr_status status_;
};

// Throws cbr::error for a negative status and returns any other: outcomes such
// as CBR_ALREADY are no errors.
inline cbr_status check(cbr_status status) {
  if (status < 0) throw error(status);
  return status;
}
#endif

// ----------------------------------------------------------- Outcomes --

// What a call came to: a value if it was called, and a status that says why
// not. It is a std::optional: test it, *it, it.value_or(0). A returned
// reference is kept as a std::reference_wrapper.
template <class R>
struct outcome
    : std::optional<std::conditional_t<
          std::is_reference_v<R>,
          std::reference_wrapper<std::remove_reference_t<R>>, R>> {
  cbr_status status = CBR_OK;
};

template <>
struct outcome<void> {
  cbr_status status = CBR_OK;

  explicit operator bool() const noexcept { return status == CBR_OK; }
};

// ---------------------------------------------------------- Type tags --

namespace detail {

// The order matters: int(double) is not double(int).
constexpr std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash = (hash + 1) * 0xd6e8feb86659fd93u;
  hash = (hash ^ (hash >> 29) ^ value) * 0x9e3779b97f4a7c15u;
  return hash ^ (hash >> 32);
}

// gcc says "[with T = x]", clang "[T = x]".
template <class T>
constexpr auto name() {
  std::string_view text = __PRETTY_FUNCTION__;
  text.remove_suffix(text.size() - text.rfind(']'));
  text.remove_prefix(text.find("T = ") + 4);
  return text;
}

template <class T>
constexpr auto name_tag() {
  std::uint64_t hash = 0;
  for (char character : name<T>())
    hash = mix(hash, static_cast<unsigned char>(character));
  return hash;
}

template <class T, class... Others>
constexpr bool one_of = (std::is_same_v<T, Others> || ...);

template <class T>
constexpr bool is_integer =
#if defined(__SIZEOF_INT128__)
    one_of<T, __int128_t, __uint128_t> ||
#endif
    one_of<T, signed char, short, int, long, long long, unsigned char,
           unsigned short, unsigned, unsigned long, unsigned long long>;

// Whether the name of a type may mean another type in another source file:
// a type of an unnamed namespace or of a function, a lambda, whatever is made
// of one.
enum class meaning { everywhere, here, unknown };

// What can be told from the spelling. clang leaves the function of a local
// type out, and both print a template's arguments without their linkage.
template <class T>
constexpr meaning spelled_meaning() {
  if (!(std::is_class_v<T> || std::is_union_v<T> || std::is_enum_v<T> ||
        std::is_function_v<T> || std::is_array_v<T> ||
        std::is_member_pointer_v<T>))
    return meaning::everywhere;
  const std::string_view text = name<T>();
  for (std::string_view mark : {"anonymous", "unnamed", "lambda"})
    for (auto at = text.find(mark); at != text.npos;
         at = text.find(mark, at + 1))
      if (at > 0 && (text[at - 1] == '(' || text[at - 1] == '<' ||
                     text[at - 1] == '{' || text[at - 1] == '\''))
        return meaning::here;
#if !defined(__clang__)
  if (text.find_first_of("<>(){}[]*&'\"$., ") == text.npos)
    return meaning::everywhere;
#endif
  return meaning::unknown;
}

// Whether a mangled name is an identifier, perhaps in named scopes.
inline bool is_plain(const char *mangled) {
  if (*mangled == 'P') ++mangled;
  const bool is_nested = *mangled == 'N';
  if (is_nested) ++mangled;
  if (mangled[0] == 'S' && mangled[1] == 't') mangled += 2;
  do {
    std::size_t length = 0;
    for (; *mangled >= '0' && *mangled <= '9'; ++mangled)
      length = length * 10 + static_cast<std::size_t>(*mangled - '0');
    if (length == 0 || std::strlen(mangled) < length || *mangled == '$' ||
        std::strncmp(mangled, "_GLOBAL__N_", 11) == 0)
      return false;
    mangled += length;
  } while (is_nested && *mangled != 'E');
  return std::strcmp(mangled, is_nested ? "E" : "") == 0;
}

// Whether a mangled name surely means one type in the whole program. The marks
// are those of functions' locals, lambdas and unnamed types and namespaces; an
// identifier among a template's arguments may hold one, too.
inline bool means_one_type(const char *mangled) {
  if (is_plain(mangled)) return true;
  for (const char *mark : {"Z", "Ul", "Ut", "$", "_GLOBAL__N_"})
    if (std::strstr(mangled, mark) != nullptr) return false;
  return true;
}

// Has the linkage of its argument: one object for a type that the program
// shares, and one per source file for a type that is the file's own.
template <class T>
struct anchor {
  static inline char here = 0;

  static std::uint64_t address() noexcept {
    return reinterpret_cast<std::uintptr_t>(&here);
  }
};

// 0 for a type that the whole program shares, else an address of its own.
template <class T>
std::uint64_t place() noexcept {
#if defined(__cpp_rtti)
  if constexpr (spelled_meaning<T>() == meaning::unknown) {
    static const bool is_shared = means_one_type(typeid(T *).name());
    return is_shared ? 0 : anchor<T>::address();
  }
#endif
  return anchor<T>::address();
}

// See type_tag.
template <class T>
constexpr std::uint64_t tag() {
  if constexpr (std::is_lvalue_reference_v<T>)
    return mix(1, tag<std::remove_reference_t<T>>());
  else if constexpr (std::is_rvalue_reference_v<T>)
    return mix(2, tag<std::remove_reference_t<T>>());
  else if constexpr (std::is_const_v<T>)
    return mix(3, tag<std::remove_const_t<T>>());
  else if constexpr (std::is_volatile_v<T>)
    return mix(4, tag<std::remove_volatile_t<T>>());
  else if constexpr (std::is_pointer_v<T>)
    return mix(5, tag<std::remove_pointer_t<T>>());
  else if constexpr (std::is_void_v<T>)
    return mix(6, 0);
  else if constexpr (std::is_same_v<T, bool>)
    return mix(7, 0);
  else if constexpr (one_of<T, float, double, long double>)
    return mix(8, std::numeric_limits<T>::digits);
  else if constexpr (is_integer<T>)
    return mix(static_cast<T>(-1) < static_cast<T>(0) ? 9 : 10, sizeof(T));
  else if constexpr (std::is_same_v<T, wchar_t>)
    return mix(12, sizeof(T));  // -fshort-wchar
  else if constexpr (spelled_meaning<T>() == meaning::everywhere)
    return mix(11, name_tag<T>());
  else if (const std::uint64_t here = place<T>(); here != 0)
    return mix(mix(13, name_tag<T>()), here);
  else
    return mix(11, name_tag<T>());
}

// Whether the tag of a type is known to the compiler.
template <class T>
constexpr bool has_constant_tag() {
  using target = std::remove_cv_t<std::remove_reference_t<T>>;
  if constexpr (std::is_pointer_v<target>)
    return has_constant_tag<std::remove_pointer_t<target>>();
  else
    return spelled_meaning<target>() == meaning::everywhere;
}

template <class Signature>
struct signature;

template <class R, class... A>
struct signature<R(A...)> {
  using result = R;

  static constexpr bool has_constant_tag =
      (detail::has_constant_tag<R>() && ... && detail::has_constant_tag<A>());

  static constexpr std::uint64_t type_tag() {
    std::uint64_t hash = tag<R>();
    ((hash = mix(hash, tag<A>())), ...);
    return hash | 1;  // 0 is no tag
  }

  template <class Callable>
  static constexpr bool accepts = std::is_invocable_r_v<R, Callable &, A...>;

  // The function that is registered for a callable.
  template <class Callable>
  static R invoke(void *context, A... arguments) {
    return static_cast<R>(std::invoke(*static_cast<Callable *>(context),
                                      std::forward<A>(arguments)...));
  }

  template <class... Given>
  static outcome<R> call(const cbr_call &call, Given &&...arguments) {
    auto function = CBR_FUNCTION_CAST_(R (*)(void *, A...), call.function);
    if constexpr (std::is_void_v<R>) {
      function(call.context, std::forward<Given>(arguments)...);
      return {CBR_OK};
    } else {
      return {{function(call.context, std::forward<Given>(arguments)...)},
              CBR_OK};
    }
  }
};

}  // namespace detail

// The type tag of a signature, a std::uint64_t for cbr_registration.type_tag
// and cbr_enter_typed. Never 0. Two signatures have the same tag when their
// results and parameters are the same:
//   integers     by size and sign, so that long is long long where both have
//                64 bits. bool, char, wchar_t, char8_t, char16_t and char32_t
//                are no integers here: each is the same as itself only
//   floating     float, double and long double by type and precision; others,
//                such as __float128 and _Float16, by name
//   pointers and references by what they point at, its const included
//   all others   by name
//   what a name says in one source file only: a type of an unnamed namespace
//                or of a function, a lambda, a type made of one of these. It
//                is the same in that file only
// What is the same may be refused, with CBR_E_INTERFACE, in three cases:
//   two compilers spell its name differently, chiefly that of a template;
//   two shared objects hide their symbols from each other, and it is a
//   template with an address among its arguments or the letters Z, Ul or Ut
//   in its mangled name;
//   two such objects were compiled with -fno-rtti, and it is a template, a
//   function, an array or a member pointer, or under clang any class or
//   enumeration.
// What is different is let through in two cases only: the program breaks the
// one definition rule, or two hashes of 64 bits are equal by chance.
// The tag is a constant expression for numbers and pointers to them, and under
// gcc for classes and enumerations that are no templates. Token.typeTag of
// Swift is another number: each is for callers of its own side, and for C.
template <class Signature,
          bool is_constant = detail::signature<Signature>::has_constant_tag>
inline constexpr std::uint64_t type_tag =
    detail::signature<Signature>::type_tag();

namespace detail {

// A type tag that is computed where it is asked for, so that nothing has to be
// initialised before.
template <class Signature>
struct computed_tag {
  operator std::uint64_t() const noexcept {
    return signature<Signature>::type_tag();
  }
};

}  // namespace detail

template <class Signature>
inline constexpr detail::computed_tag<Signature> type_tag<Signature, false>{};

// ------------------------------------------------------------ Calling --

// A call in flight, left when the guard goes out of scope, also by an
// exception (G8, G11). Leave it on the thread that entered it.
//
//   if (cbr::guard call{token}) call.context<window>()->redraw();
class [[nodiscard]] guard {
 public:
  // Enter as cbr_enter, cbr_enter_typed and cbr_enter_method, whose statuses
  // status() has.
  explicit guard(cbr_token token) noexcept
      : status_(cbr_enter(token, &call_)) {}
  guard(cbr_token token, std::uint64_t tag) noexcept
      : status_(cbr_enter_typed(token, tag, &call_)) {}
  guard(cbr_token token, const cbr_interface &interface,
        std::uint32_t method) noexcept
      : status_(cbr_enter_method(token, &interface, method, &call_)) {}

  guard(guard &&other) noexcept
      : call_(other.call_),
        status_(std::exchange(other.status_, CBR_E_INVALID)) {
    other.call_ = CBR_CALL_INIT;
  }
  guard &operator=(guard &&other) noexcept {
    if (this == &other) return *this;
    leave();
    call_ = std::exchange(other.call_, CBR_CALL_INIT);
    status_ = std::exchange(other.status_, CBR_E_INVALID);
    return *this;
  }
  ~guard() { leave(); }

  // Whether the call is in flight: entered, not left, not moved away.
  explicit operator bool() const noexcept { return status_ == CBR_OK; }

  // Why not. CBR_E_INVALID once it was left or moved away.
  cbr_status status() const noexcept { return status_; }

  // The default answer of an absent method, after CBR_E_UNIMPLEMENTED.
  cbr_disposition disposition() const noexcept {
    return static_cast<cbr_disposition>(call_.disposition);
  }

  // The context of the call in flight; NULL when there is none.
  template <class T>
  T *context() const noexcept {
    return static_cast<T *>(call_.context);
  }

  // The function of the call in flight, as a pointer of this type, which is
  // believed; NULL when there is no call in flight.
  template <class Function>
  Function function() const noexcept {
    return CBR_FUNCTION_CAST_(Function, call_.function);
  }

  // Calls the function with the context and these arguments, or does nothing
  // when there is no call in flight. The signature is believed: it must be
  // the one that was registered.
  template <class Signature, class... Arguments>
  auto call(Arguments &&...arguments) const {
    using signature = detail::signature<Signature>;
    if (status_ != CBR_OK) {
      outcome<typename signature::result> refused;
      refused.status = status_;
      return refused;
    }
    return signature::call(call_, std::forward<Arguments>(arguments)...);
  }

  // Ends the call early. As cbr_leave.
  cbr_status leave() noexcept {
    if (std::exchange(status_, CBR_E_INVALID) != CBR_OK) return CBR_E_INVALID;
    cbr_status status = cbr_leave(&call_);
    call_ = CBR_CALL_INIT;
    return status;
  }

 private:
  cbr_call call_ = CBR_CALL_INIT;
  cbr_status status_;
};

// Calls a token that was bound to a callable of this signature, if it is live.
// The outcome has the result, or the status of cbr_enter_typed. For a token
// that C code registered without a tag: cbr::guard(token).call<R(A...)>(...).
template <class Signature, class... Arguments>
auto call(cbr_token token, Arguments &&...arguments) {
  return guard(token, type_tag<Signature>)
      .template call<Signature>(std::forward<Arguments>(arguments)...);
}

// --------------------------------------------------------- Trampolines --

namespace detail {

template <class Signature, std::size_t Cookie, auto... Otherwise>
struct trampoline;

template <class R, class... A, std::size_t Cookie, auto... Otherwise>
struct trampoline<R(A...), Cookie, Otherwise...> {
  static_assert(Cookie < sizeof...(A), "there is no such parameter");
  static_assert(sizeof...(Otherwise) <= 1, "there is one default answer");
  using cookie = std::tuple_element_t<Cookie, std::tuple<A...>>;
  static_assert(std::is_same_v<cookie, void *> ||
                    std::is_same_v<cookie, const void *>,
                "the cookie is a void * or a const void *");

  static R call(A... arguments) {
    const cbr_token token = cbr_from_cookie(
        std::get<Cookie>(std::forward_as_tuple(arguments...)));
    if (guard guarded{token})
      return forward(guarded, std::index_sequence_for<A...>{},
                     std::forward<A>(arguments)...);
    if constexpr (sizeof...(Otherwise) == 1)
      return static_cast<R>((Otherwise, ...));
    else if constexpr (!std::is_void_v<R>)
      return R{};
  }

 private:
  template <std::size_t... Places>
  static R forward(const guard &guarded, std::index_sequence<Places...>,
                   A... arguments) {
    return guarded.function<R (*)(A...)>()(
        argument<Places>(guarded, std::forward<A>(arguments))...);
  }

  template <std::size_t Place, class T>
  static decltype(auto) argument(const guard &guarded, T &&given) {
    if constexpr (Place == Cookie)
      return static_cast<cookie>(guarded.context<void>());
    else
      return std::forward<T>(given);
  }
};

}  // namespace detail

// A function for an interface that takes a function and a void *, as
// CBR_TRAMPOLINE defines one (G29); the call is left by exceptions, too.
//   Signature  its type, which is that of the token's function as well
//   Cookie     which parameter the cookie is, from 0
//   Otherwise  what it returns when the token is not called; nothing: R{}
//
//   qsort_r(all, count, size,
//           cbr::trampoline<int(const void *, const void *, void *), 2>,
//           cbr_cookie(token));
template <class Signature, std::size_t Cookie, auto... Otherwise>
inline constexpr Signature *trampoline =
    &detail::trampoline<Signature, Cookie, Otherwise...>::call;

// ------------------------------------------------------------- Owning --

namespace detail {

// A handle that its wrapper ends. Once nothing of it can be running any more
// it is kept as a number, to be asked about.
template <cbr_status (*Finish)(cbr_handle, cbr_reason, std::uint64_t)>
class owned {
 public:
  operator cbr_handle() const noexcept { return handle_; }

  // Gives the handle up: it lives on until its owner or registry ends.
  cbr_handle release() noexcept {
    over_ = true;
    return std::exchange(handle_, CBR_NONE);
  }

 protected:
  owned() noexcept = default;
  owned(owned &&other) noexcept
      : over_(std::exchange(other.over_, true)),
        handle_(std::exchange(other.handle_, CBR_NONE)) {}
  owned &operator=(owned &&other) noexcept {
    if (this != &other) {
      bool over = std::exchange(other.over_, true);
      replace(other.release(), over);
    }
    return *this;
  }
  ~owned() { finish(CBR_REASON_ENDED, CBR_FOREVER); }

  void adopt(cbr_handle handle) noexcept {
    replace(handle, handle == CBR_NONE);
  }

  cbr_status finish(cbr_reason reason, std::uint64_t timeout_ns) noexcept {
    if (over_) return CBR_ALREADY;
    cbr_status status = Finish(handle_, reason, timeout_ns);
    over_ = status == CBR_OK || status == CBR_ALREADY;
    return status;
  }

 private:
  // It holds the new one when the former ends: what is called then may give it
  // another.
  void replace(cbr_handle handle, bool over) noexcept {
    cbr_handle former = std::exchange(handle_, handle);
    if (!std::exchange(over_, over))
      (void)Finish(former, CBR_REASON_REPLACED, CBR_FOREVER);
  }

  bool over_ = true;
  cbr_handle handle_ = CBR_NONE;
};

inline cbr_status close(cbr_handle registry, cbr_reason,
                        std::uint64_t timeout_ns) {
  return cbr_registry_close(registry, timeout_ns);
}

}  // namespace detail

// A registry that is closed with its wrapper.
class registry : public detail::owned<detail::close> {
 public:
  // Opens a registry; one that the wrapper held is closed. As
  // cbr_registry_open; on failure nothing changes.
  [[nodiscard]] cbr_status open(const cbr_registry_options &options) {
    cbr_registry opened;
    cbr_status status = cbr_registry_open(&options, &opened);
    if (status == CBR_OK) adopt(opened);
    return status;
  }
  [[nodiscard]] cbr_status open(const char *history_path = nullptr) {
    cbr_registry_options options = CBR_REGISTRY_OPTIONS_INIT;
    options.history_path = history_path;
    return open(options);
  }

  // As cbr_registry_close; CBR_ALREADY also when there is nothing to close.
  cbr_status close(std::uint64_t timeout_ns = CBR_FOREVER) noexcept {
    return finish(CBR_REASON_NONE, timeout_ns);
  }
};

// What callbacks belong to: a member of the object that they call.
class owner : public detail::owned<cbr_invalidate_wait> {
 public:
  // As cbr_owner_create; an owner that the wrapper held is ended.
  [[nodiscard]] cbr_status create(cbr_registry registry, const char *label) {
    cbr_owner created;
    cbr_status status = cbr_owner_create(registry, label, &created);
    if (status == CBR_OK) adopt(created);
    return status;
  }

  // As cbr_owner_create_child.
  [[nodiscard]] cbr_status create_child(cbr_owner parent, const char *label) {
    cbr_owner created;
    cbr_status status = cbr_owner_create_child(parent, label, &created);
    if (status == CBR_OK) adopt(created);
    return status;
  }

  // As cbr_invalidate_wait; CBR_ALREADY also when there is nothing to end.
  cbr_status end(cbr_reason reason = CBR_REASON_ENDED,
                 std::uint64_t timeout_ns = CBR_FOREVER) noexcept {
    return finish(reason, timeout_ns);
  }
};

// The owner of the object that this is a member of (G18): others register on
// cbr_owner_for_object(registry, the object), and all that ends when it does.
//
//   class window {
//     ...                        what callbacks use
//     cbr::living living{this};  the last member: it is destroyed first
//   };
//   cbr::check(it.living.begin(registry, "window"));
//
// There is no base class for this: what callbacks use would be destroyed
// before it. For the same reason a class that others derive from ends it
// itself, in the destructor of the last. A copy is another object, and a
// member of this kind cannot be copied or moved: write your constructors.
class living : public detail::owned<cbr_invalidate_wait> {
 public:
  explicit living(const void *object) noexcept : object_(object) {}
  living(living &&) = delete;
  ~living() { end(); }

  // As cbr_owner_for_object.
  [[nodiscard]] cbr_status begin(cbr_registry registry, const char *label) {
    cbr_owner found;
    cbr_status status =
        cbr_owner_for_object(registry, object_, label, &found);
    if (status != CBR_OK) return status;
    registry_ = registry;
    if (found != *this) adopt(found);
    return status;
  }

  // As cbr_invalidate_wait; CBR_ALREADY also when there is nothing to end.
  // Where somebody else has ended the owner before, the object may have been
  // given another one, which ends now.
  cbr_status end(std::uint64_t timeout_ns = CBR_FOREVER) noexcept {
    cbr_registry registry = std::exchange(registry_, CBR_NONE);
    cbr_owner found;
    if (registry != CBR_NONE && !cbr_is_live(*this) &&
        cbr_owner_for_object(registry, object_, nullptr, &found) == CBR_OK)
      adopt(found);
    return finish(CBR_REASON_OBJECT_DIED, timeout_ns);
  }

 private:
  const void *object_;
  cbr_registry registry_ = CBR_NONE;
};

// What a registration says of itself. A label alone will do, and the rest is
// as in cbr_registration; the site is the line that makes it.
struct about {
  about(const char *its_label, cbr_owner its_owner = CBR_NONE,
        std::uint32_t its_flags = 0, std::uint32_t its_level = 0,
        std::uint32_t its_line = __builtin_LINE(),
        const char *its_file = __builtin_FILE()) noexcept
      : label(its_label), owner(its_owner), flags(its_flags),
        level(its_level), line(its_line), file(its_file) {}

  const char *label;
  cbr_owner owner;
  std::uint32_t flags, level, line;
  const char *file;
};

namespace detail {

inline cbr_registration describe(const about &what) {
  cbr_registration made = CBR_REGISTRATION_INIT;
  made.label = what.label;
  made.owner = what.owner;
  made.flags = what.flags;
  made.level = what.level;
  made.line = what.line;
  made.file = what.file;
  return made;
}

// Moves a callable to the heap and has it registered, to be deleted by its
// destroy. On failure nothing is left of it.
template <class Callable, class Register>
cbr_status add_callable(const about &what, cbr_function function,
                        Callable &&callable, Register &&register_it) {
  using stored = std::decay_t<Callable>;
  std::unique_ptr<stored> context(
      new (std::nothrow) stored(std::forward<Callable>(callable)));
  if (!context) return CBR_E_NOMEM;

  cbr_registration made = describe(what);
  made.function = function;
  made.context = context.get();
  made.destroy = [](void *its_context) {
    delete static_cast<stored *>(its_context);
  };
  cbr_status status = register_it(made);
  if (status == CBR_OK) context.release();
  return status;
}

}  // namespace detail

// A callback that is ended with its wrapper.
class registration : public detail::owned<cbr_invalidate_wait> {
 public:
  // Registers a callable: a lambda, a function, a function object.
  //   what      "label", or {"label", owner, flags, level}
  //   callable  copied or moved to the heap; deleted exactly once, when the
  //             token is dead and nothing is in flight or leased (G7)
  // As cbr_register, CBR_E_NOMEM included; on failure nothing changes. A
  // registration that the wrapper held is ended. Throws only what copying the
  // callable does.
  template <class Signature, class Callable>
  [[nodiscard]] cbr_status bind(cbr_registry registry, const about &what,
                                Callable &&callable) {
    return add<Signature>(registry, what, type_tag<Signature>,
                          std::forward<Callable>(callable));
  }

  // The same without a type tag: for what is called from C, by cbr_enter, and
  // for what cbr_slot_on_clear names, which is a void(cbr_slot, cbr_token).
  template <class Signature, class Callable>
  [[nodiscard]] cbr_status bind_untagged(cbr_registry registry,
                                         const about &what,
                                         Callable &&callable) {
    return add<Signature>(registry, what, 0, std::forward<Callable>(callable));
  }

  // As cbr_invalidate_wait; CBR_ALREADY also when there is nothing to end.
  cbr_status end(cbr_reason reason = CBR_REASON_ENDED,
                 std::uint64_t timeout_ns = CBR_FOREVER) noexcept {
    return finish(reason, timeout_ns);
  }

 private:
  template <class Signature, class Callable>
  cbr_status add(cbr_registry registry, const about &what, std::uint64_t tag,
                 Callable &&callable) {
    using stored = std::decay_t<Callable>;
    using signature = detail::signature<Signature>;
    static_assert(signature::template accepts<stored>,
                  "the callable cannot be called with this signature");
    cbr_token token;
    cbr_status status = detail::add_callable(
        what,
        CBR_FUNCTION_CAST_(cbr_function, &signature::template invoke<stored>),
        std::forward<Callable>(callable), [&](cbr_registration &made) {
          made.type_tag = tag;
          return cbr_register(registry, &made, &token);
        });
    if (status == CBR_OK) adopt(token);
    return status;
  }
};

// -------------------------------------------------------------- Slots --

// A delegate property: holds one callback, and is empty once that has died
// (G19). A member of the object whose delegate it is.
//
//   cbr::slot delegate;
//   cbr::check(delegate.create(registry, "delegate of a view"));
//   delegate.set(controller);  // a cbr::registration, or any token
//   bool may = delegate.call<bool()>().value_or(true);
class slot : public detail::owned<cbr_invalidate_wait> {
 public:
  // As cbr_slot_create; a slot that the wrapper held is ended.
  [[nodiscard]] cbr_status create(cbr_registry registry, const char *label,
                                  cbr_owner owner = CBR_NONE) {
    cbr_slot created;
    cbr_status status = cbr_slot_create(registry, label, owner, &created);
    if (status == CBR_OK) adopt(created);
    return status;
  }

  // As cbr_slot_set; CBR_NONE empties it.
  cbr_status set(cbr_token token) noexcept {
    return cbr_slot_set(*this, token);
  }

  // As cbr_slot_get: CBR_NONE when it is empty.
  cbr_token token() const noexcept { return cbr_slot_get(*this); }

  // As cbr_slot_on_clear, of a token of bind_untagged<void(cbr_slot,
  // cbr_token)>.
  cbr_status on_clear(cbr_token observer) noexcept {
    return cbr_slot_on_clear(*this, observer);
  }

  // Calls the callback that it holds, as cbr::call does. CBR_EMPTY it holds
  // none, of which nothing is recorded; CBR_E_STALE the slot is dead.
  template <class Signature, class... Arguments>
  auto call(Arguments &&...arguments) const {
    const cbr_token held = token();
    if (held != CBR_NONE)
      return cbr::call<Signature>(held, std::forward<Arguments>(arguments)...);
    outcome<typename detail::signature<Signature>::result> refused;
    refused.status = cbr_is_live(*this) ? CBR_EMPTY : CBR_E_STALE;
    return refused;
  }

  // As cbr_invalidate_wait; CBR_ALREADY also when there is nothing to end.
  cbr_status end(cbr_reason reason = CBR_REASON_ENDED,
                 std::uint64_t timeout_ns = CBR_FOREVER) noexcept {
    return finish(reason, timeout_ns);
  }
};

// ------------------------------------------------------------ Signals --

// A signal's handler, which is ended with its wrapper: when that is gone,
// nothing of it is running on another thread.
class [[nodiscard]] connection : public detail::owned<cbr_invalidate_wait> {
 public:
  connection() noexcept = default;

  // Whether it was connected, and not released; it may have ended meanwhile
  // (cbr_is_live).
  explicit operator bool() const noexcept {
    return cbr_handle(*this) != CBR_NONE;
  }

  // Why not: what signal::connect came to.
  cbr_status status() const noexcept { return status_; }

  // As cbr_invalidate_wait; CBR_ALREADY also when there is nothing to end.
  cbr_status end(cbr_reason reason = CBR_REASON_ENDED,
                 std::uint64_t timeout_ns = CBR_FOREVER) noexcept {
    return finish(reason, timeout_ns);
  }

 private:
  template <class...>
  friend class signal;

  connection(cbr_status status, cbr_token token) noexcept : status_(status) {
    adopt(token);
  }

  cbr_status status_ = CBR_E_INVALID;
};

// What an emission did (cbr_emission), and its status, as of cbr_emit.
struct emission : cbr_emission {
  cbr_status status;

  explicit operator bool() const noexcept { return status == CBR_OK; }
};

// Callables that are called together (G20).
//
//   cbr::signal<const document &> changed;
//   cbr::check(changed.create(registry, "changed"));
//   cbr::connection shown = changed.connect(
//       {"preview", owner}, [&](const document &it) { show(it); });
//   changed.emit(document);
//
// Handlers share the arguments: one that is passed by value, which the signal
// has as T, reaches each as a const T &, and one that it has as T & as that. A
// handler answers nothing, or a cbr_disposition.
//
// Its handle is for cbr_block, cbr_invalidate, cbr_explain and the like:
// cbr_emit and cbr_connect of C code know nothing of the arguments.
template <class... Arguments>
class signal : public detail::owned<cbr_invalidate_wait> {
  static_assert(!(std::is_rvalue_reference_v<Arguments> || ...),
                "several handlers cannot all be given what may be moved from");

 public:
  // As cbr_signal_create; a signal that the wrapper held is ended.
  [[nodiscard]] cbr_status create(cbr_registry registry, const char *label,
                                  cbr_owner owner = CBR_NONE) {
    cbr_signal created;
    cbr_status status = cbr_signal_create(registry, label, owner, &created);
    if (status == CBR_OK) adopt(created);
    return status;
  }

  // Connects a callable.
  //   what      "label", or {"label", owner, flags, level}; CBR_ONE_SHOT and
  //             CBR_THREAD_BOUND are flags
  //   callable  copied or moved to the heap; deleted exactly once, when the
  //             connection has ended and no call of it is running (G7)
  //   priority  higher ones are called first
  // The connection's status is as of cbr_connect, CBR_E_NOMEM included. Throws
  // only what copying the callable does.
  template <class Callable>
  connection connect(const about &what, Callable &&callable,
                     std::int32_t priority = 0) const {
    using stored = std::decay_t<Callable>;
    static_assert(std::is_invocable_v<stored &, passed<Arguments>...>,
                  "the callable cannot be called with these arguments");
    cbr_connection_options options = CBR_CONNECTION_OPTIONS_INIT;
    options.priority = priority;
    cbr_token token = CBR_NONE;
    cbr_status status = detail::add_callable(
        what, CBR_FUNCTION_CAST_(cbr_function, &handle<stored>),
        std::forward<Callable>(callable), [&](cbr_registration &made) {
          return cbr_connect(*this, &made, &options, &token);
        });
    return connection(status, token);
  }

  // Connects a method. The object must outlive the connection: end it, or the
  // owner that what names, in the object's destructor.
  template <class Object, class Method,
            class = std::enable_if_t<
                std::is_member_function_pointer_v<Method>>>
  connection connect(const about &what, Object *object, Method method,
                     std::int32_t priority = 0) const {
    return connect(
        what,
        [object, method](passed<Arguments>... arguments) {
          return std::invoke(method, object, arguments...);
        },
        priority);
  }

  // Calls the handlers, as cbr_emit. What leaves one of them as an exception
  // ends the emission and is thrown from here.
  emission emit(Arguments... arguments) const {
    emitted what{{arguments...}, nullptr};
    emission result{CBR_EMISSION_INIT, CBR_OK};
    result.status = cbr_emit(*this, &what, &result);
#if defined(__cpp_exceptions)
    if (what.thrown) std::rethrow_exception(std::move(what.thrown));
#endif
    return result;
  }

  // As cbr_invalidate_wait; CBR_ALREADY also when there is nothing to end.
  cbr_status end(cbr_reason reason = CBR_REASON_ENDED,
                 std::uint64_t timeout_ns = CBR_FOREVER) noexcept {
    return finish(reason, timeout_ns);
  }

 private:
  // What a handler is given.
  template <class T>
  using passed = std::conditional_t<std::is_reference_v<T>, T, const T &>;

  // An emission's argument: what cbr_emit passes on.
  struct emitted {
    std::tuple<passed<Arguments>...> arguments;
    std::exception_ptr thrown;
  };

  template <class Callable>
  static cbr_disposition handle(void *context, void *argument) {
    auto &callable = *static_cast<Callable *>(context);
    auto &what = *static_cast<emitted *>(argument);
#if defined(__cpp_exceptions)
    try {
      return answer(callable, what);
#if defined(__GLIBCXX__)
    } catch (abi::__forced_unwind &) {
      throw;  // the thread is ending, by pthread_exit or pthread_cancel
#endif
    } catch (...) {
      what.thrown = std::current_exception();
      return CBR_STOP;
    }
#else
    return answer(callable, what);
#endif
  }

  template <class Callable>
  static cbr_disposition answer(Callable &callable, emitted &what) {
    using result = std::invoke_result_t<Callable &, passed<Arguments>...>;
    static_assert(std::is_void_v<result> || std::is_enum_v<result> ||
                      std::is_same_v<result, cbr_disposition>,
                  "a handler answers nothing, or a cbr_disposition");
    if constexpr (std::is_void_v<result>) {
      std::apply(callable, what.arguments);
      return CBR_CONTINUE;
    } else {
      return static_cast<cbr_disposition>(
          std::apply(callable, what.arguments));
    }
  }
};

// Keeps a signal or one connection from being called until it goes out of
// scope. Several may overlap: blocking is counted.
class [[nodiscard]] blocked {
 public:
  // As cbr_block, whose status status() has.
  explicit blocked(cbr_handle handle) noexcept
      : handle_(handle), status_(cbr_block(handle)) {}

  blocked(blocked &&other) noexcept
      : handle_(other.handle_),
        status_(std::exchange(other.status_, CBR_E_INVALID)) {}
  blocked &operator=(blocked &&other) noexcept {
    if (this == &other) return *this;
    unblock();
    handle_ = other.handle_;
    status_ = std::exchange(other.status_, CBR_E_INVALID);
    return *this;
  }
  ~blocked() { unblock(); }

  // Whether it blocks: not unblocked, not moved away.
  explicit operator bool() const noexcept { return status_ == CBR_OK; }

  // Why not. CBR_E_INVALID once it was unblocked or moved away.
  cbr_status status() const noexcept { return status_; }

  // Unblocks early. As cbr_unblock.
  cbr_status unblock() noexcept {
    if (std::exchange(status_, CBR_E_INVALID) != CBR_OK) return CBR_E_INVALID;
    return cbr_unblock(handle_);
  }

 private:
  cbr_handle handle_;
  cbr_status status_;
};

// ------------------------------------------------------------- Queues --

namespace detail {

// What a queue keeps of a call: its arguments, by value.
template <class Signature>
struct posted;

template <class R, class... A>
struct posted<R(A...)> {
  static_assert(!((std::is_lvalue_reference_v<A> &&
                   !std::is_const_v<std::remove_reference_t<A>>) ||
                  ...),
                "a call that is delivered later cannot be given a T &: what "
                "it refers to may be gone; give a pointer, or a value");

  std::tuple<std::decay_t<A>...> arguments;

  static void invoke(cbr_function function, void *context,
                     void *payload) noexcept {
    auto called = CBR_FUNCTION_CAST_(R (*)(void *, A...), function);
    std::apply(
        [&](auto &...each) { called(context, static_cast<A &&>(each)...); },
        static_cast<posted *>(payload)->arguments);
  }

  static void free(void *payload) { delete static_cast<posted *>(payload); }
};

}  // namespace detail

// Where calls are delivered: by whoever runs it, or on a thread of its own
// (G21, G22).
//
//   cbr::queue queue;
//   cbr::check(queue.create(registry, "main loop"));
//   cbr::check(queue.post<void(std::string)>(shown, "done"));
//   queue.run();  // when queue.descriptor() is readable
class queue : public detail::owned<cbr_invalidate_wait> {
 public:
  // As cbr_queue_create; a queue that the wrapper held is ended.
  [[nodiscard]] cbr_status create(cbr_registry registry,
                                  const cbr_queue_options &options) {
    cbr_queue created;
    cbr_status status = cbr_queue_create(registry, &options, &created);
    if (status == CBR_OK) adopt(created);
    return status;
  }

  // The same with the options' defaults: CBR_QUEUE_PUMPED or CBR_QUEUE_THREAD.
  [[nodiscard]] cbr_status create(cbr_registry registry, const char *label,
                                  std::uint32_t kind = CBR_QUEUE_PUMPED,
                                  cbr_owner owner = CBR_NONE) {
    cbr_queue_options options = CBR_QUEUE_OPTIONS_INIT;
    options.label = label;
    options.kind = kind;
    options.owner = owner;
    return create(registry, options);
  }

  // Posts a call of a token that was bound to a callable of this signature.
  // The arguments are copied or moved to the heap, count for max_bytes by
  // their sizeof, and are destroyed exactly once, delivered or not (G21); the
  // callable is given them as movable. Its result is dropped.
  // As cbr_post, CBR_E_NOMEM included. Throws only what copying does.
  template <class Signature, class... Arguments>
  [[nodiscard]] cbr_status post(cbr_token token,
                                Arguments &&...arguments) const {
    using posted = detail::posted<Signature>;
    std::unique_ptr<posted> payload(
        new (std::nothrow) posted{{std::forward<Arguments>(arguments)...}});
    if (!payload) return CBR_E_NOMEM;
    cbr_message message = CBR_MESSAGE_INIT;
    message.payload = payload.get();
    message.payload_bytes = sizeof(posted);
    message.free_payload = posted::free;
    message.type_tag = type_tag<Signature>;
    message.invoke = posted::invoke;
    cbr_status status = cbr_post(*this, token, &message);
    if (status == CBR_OK) payload.release();
    return status;
  }

  // As cbr_queue_run, _descriptor, _finish and _statistics.
  cbr_status run(std::size_t limit = 0, std::size_t *ran = nullptr) const {
    return cbr_queue_run(*this, limit, ran);
  }
  int descriptor() const noexcept { return cbr_queue_descriptor(*this); }
  cbr_status finish() noexcept { return cbr_queue_finish(*this); }
  cbr_status statistics(cbr_queue_counts &counts) const noexcept {
    counts = CBR_QUEUE_COUNTS_INIT;
    return cbr_queue_statistics(*this, &counts);
  }

  // As cbr_invalidate_wait: what waits in it is dropped. CBR_ALREADY also when
  // there is nothing to end.
  cbr_status end(cbr_reason reason = CBR_REASON_ENDED,
                 std::uint64_t timeout_ns = CBR_FOREVER) noexcept {
    return owned::finish(reason, timeout_ns);
  }
};

// ----------------------------------------------------------- Sessions --

// Whom a session tells (G23 to G28): see cbr_did_receive_response and those
// that follow it. A cbr::delegate registers one.
class session_delegate {
 public:
  session_delegate() = default;
  session_delegate(const session_delegate &) = delete;
  session_delegate &operator=(const session_delegate &) = delete;
  virtual ~session_delegate() = default;

  // Views are valid until the method returns.
  virtual void did_receive_response(cbr_task task, std::string_view response,
                                    cbr_reply reply) {
    (void)task;
    (void)response;
    cbr_reply_send(reply, CBR_ALLOW, CBR_NONE);
  }
  virtual void did_receive_data(cbr_task task, std::string_view data) {
    (void)task;
    (void)data;
  }
  virtual void did_complete(cbr_task task, int error) = 0;
  virtual void did_become_invalid(cbr_session session, cbr_reason reason) {
    (void)session;
    (void)reason;
  }
  virtual void did_hand_over(cbr_task task, cbr_token successor) {
    (void)task;
    (void)successor;
  }
};

namespace detail {

inline std::string_view view(const void *bytes, std::size_t size) noexcept {
  return {static_cast<const char *>(bytes), size};
}

// The methods of cbr_session_interface, for a session_delegate.
struct told {
  static session_delegate &object(void *context) noexcept {
    return *static_cast<session_delegate *>(context);
  }
  static void response(void *context, cbr_task task, const void *bytes,
                       std::size_t size, cbr_reply reply) noexcept {
    object(context).did_receive_response(task, view(bytes, size), reply);
  }
  static void data(void *context, cbr_task task, const void *bytes,
                   std::size_t size) noexcept {
    object(context).did_receive_data(task, view(bytes, size));
  }
  static void complete(void *context, cbr_task task, int error) noexcept {
    object(context).did_complete(task, error);
  }
  static void invalid(void *context, cbr_session session,
                      cbr_reason reason) noexcept {
    object(context).did_become_invalid(session, reason);
  }
  static void hand_over(void *context, cbr_task task,
                        cbr_token successor) noexcept {
    object(context).did_hand_over(task, successor);
  }
};

inline cbr_status end(cbr_handle handle, cbr_reason reason, std::uint64_t) {
  return cbr_invalidate(handle, reason);
}

inline cbr_status cancel(cbr_handle session, cbr_reason, std::uint64_t) {
  return cbr_session_cancel(session);
}

}  // namespace detail

// A session_delegate that sessions can be given, ended with its wrapper. What
// its sessions have not told it by then is recorded as undelivered: keep it
// until did_become_invalid to hear all.
class delegate : public detail::owned<detail::end> {
 public:
  // Registers it; one that the wrapper held is ended.
  //   what    "label", or {"label", owner, flags, level}
  //   object  deleted exactly once, when the token is dead and no session
  //           holds it any more; on failure at once
  // As cbr_register; CBR_E_INVALID it is null.
  [[nodiscard]] cbr_status bind(cbr_registry registry, const about &what,
                                std::unique_ptr<session_delegate> object) {
    if (!object) return CBR_E_INVALID;
    using told = detail::told;
    const cbr_function methods[CBR_SESSION_METHODS] = {
        CBR_FUNCTION_CAST_(cbr_function, &told::response),
        CBR_FUNCTION_CAST_(cbr_function, &told::data),
        CBR_FUNCTION_CAST_(cbr_function, &told::complete),
        CBR_FUNCTION_CAST_(cbr_function, &told::invalid),
        CBR_FUNCTION_CAST_(cbr_function, &told::hand_over)};
    cbr_registration made = detail::describe(what);
    made.interface = cbr_session_interface();
    made.methods = methods;
    made.context = object.get();
    made.destroy = [](void *context) {
      delete static_cast<session_delegate *>(context);
    };
    cbr_token token;
    cbr_status status = cbr_register(registry, &made, &token);
    if (status != CBR_OK) return status;
    object.release();
    adopt(token);
    return status;
  }

  // As cbr_invalidate; CBR_ALREADY also when there is nothing to end.
  cbr_status end(cbr_reason reason = CBR_REASON_ENDED) noexcept {
    return finish(reason, 0);
  }
};

// Work with one delegate, in tasks, and with an end.
//
//   cbr::delegate downloader;
//   cbr::check(downloader.bind(registry, "downloader",
//                              std::make_unique<my_downloader>()));
//   cbr::session session;
//   cbr::check(session.create(registry, "downloads", downloader));
//   cbr_task task;
//   cbr::check(session.begin("page", task));
//   cbr_task_data(task, bytes, size);
//   cbr_task_complete(task, 0);
//   session.finish();
class session : public detail::owned<detail::cancel> {
 public:
  // As cbr_session_create; a session that the wrapper held is cancelled.
  //   what   "label", or {"label", owner}
  //   queue  where the delegate is told
  [[nodiscard]] cbr_status create(cbr_registry registry, const about &what,
                                  cbr_token delegate,
                                  cbr_queue queue = CBR_NONE) {
    cbr_session_options options = CBR_SESSION_OPTIONS_INIT;
    options.label = what.label;
    options.delegate = delegate;
    options.owner = what.owner;
    options.line = what.line;
    options.file = what.file;
    options.queue = queue;
    cbr_session created;
    cbr_status status = cbr_session_create(registry, &options, &created);
    if (status == CBR_OK) adopt(created);
    return status;
  }

  // As cbr_task_begin, of a task without a context.
  //   what   "label"
  //   flags  CBR_TASK_GATHER
  [[nodiscard]] cbr_status begin(const about &what, cbr_task &out,
                                 std::uint32_t flags = 0) const {
    return begin(what, out, std::unique_ptr<char>(), flags);
  }

  // The same with a context, which task_context gives back.
  //   context  deleted exactly once, with the task (G28); on failure at once
  template <class Context>
  [[nodiscard]] cbr_status begin(const about &what, cbr_task &out,
                                 std::unique_ptr<Context> context,
                                 std::uint32_t flags = 0) const {
    cbr_task_options options = CBR_TASK_OPTIONS_INIT;
    options.label = what.label;
    options.flags = flags;
    options.line = what.line;
    options.file = what.file;
    options.context = context.get();
    if (context)
      options.destroy = [](void *its_context) {
        delete static_cast<Context *>(its_context);
      };
    cbr_status status = cbr_task_begin(*this, &options, &out);
    if (status == CBR_OK) context.release();
    return status;
  }

  // The same with all that cbr_task_options has, timeouts among it.
  [[nodiscard]] cbr_status begin(const cbr_task_options &options,
                                 cbr_task &out) const {
    return cbr_task_begin(*this, &options, &out);
  }

  // As cbr_session_finish and cbr_session_cancel.
  cbr_status finish() noexcept { return cbr_session_finish(*this); }
  cbr_status cancel() noexcept { return cbr_session_cancel(*this); }
};

// As cbr_task_context, of a task that was begun with a Context.
template <class Context>
Context *task_context(cbr_task task) noexcept {
  return static_cast<Context *>(cbr_task_context(task));
}

// -------------------------------------------------------- Completions --

// A callable that is called exactly once (G27).
//
//   cbr::completion fetched;
//   cbr::check(fetched.create(registry, "fetched", ECANCELED,
//       [](int error, void *value) { ... }));
//   fetched.send(0, &page);
class completion : public detail::owned<cbr_invalidate_wait> {
 public:
  // As cbr_completion_create; one that the wrapper held is ended, by which it
  // is called with its default error, as it is by the destructor, unless
  // something was sent.
  //   what      "label", or {"label", owner}
  //   callable  a void(int error, void *value); moved to the heap, deleted
  //             when it has been called
  // On failure nothing is called.
  template <class Callable>
  [[nodiscard]] cbr_status create(cbr_registry registry, const about &what,
                                  int default_error, Callable &&callable) {
    using stored = std::decay_t<Callable>;
    static_assert(std::is_invocable_v<stored &, int, void *>,
                  "the callable is a void(int error, void *value)");
    cbr_reply created;
    cbr_status status = detail::add_callable(
        what, CBR_FUNCTION_CAST_(cbr_function, &complete<stored>),
        std::forward<Callable>(callable), [&](cbr_registration &made) {
          return cbr_completion_create(registry, &made, default_error,
                                       &created);
        });
    if (status == CBR_OK) adopt(created);
    return status;
  }

  // As cbr_completion_send.
  cbr_status send(int error, void *value = nullptr) const {
    return cbr_completion_send(*this, error, value);
  }

  // As cbr_completion_set_timeout.
  [[nodiscard]] cbr_status set_timeout(cbr_queue queue,
                                       std::uint64_t timeout_ns) const {
    return cbr_completion_set_timeout(*this, queue, timeout_ns);
  }

  // As cbr_invalidate_wait; CBR_ALREADY also when there is nothing to end.
  cbr_status end(cbr_reason reason = CBR_REASON_ENDED,
                 std::uint64_t timeout_ns = CBR_FOREVER) noexcept {
    return finish(reason, timeout_ns);
  }

 private:
  template <class Callable>
  static void complete(void *context, int error, void *value) noexcept {
    std::invoke(*static_cast<Callable *>(context), error, value);
  }
};

// ------------------------------------------------------------- Thunks --

// The fields of a structure that thunks take or return by value; an array in
// it is as many fields.
//
//   template <>
//   struct cbr::fields<point> : cbr::field_list<double, double> {};
template <class T>
struct fields;

namespace detail {

template <class T>
constexpr cbr_type_kind type_kind() {
  if constexpr (std::is_void_v<T>)
    return CBR_TYPE_VOID;
  else if constexpr (std::is_pointer_v<T> || std::is_reference_v<T>)
    return CBR_TYPE_POINTER;
  else if constexpr (std::is_same_v<T, bool>)
    return CBR_TYPE_BOOL;
  else if constexpr (std::is_same_v<T, float>)
    return CBR_TYPE_FLOAT;
  else if constexpr (std::is_same_v<T, double>)
    return CBR_TYPE_DOUBLE;
  else if constexpr (std::is_enum_v<T>)
    return type_kind<std::underlying_type_t<T>>();
  else if constexpr (!std::is_integral_v<T>)
    return CBR_TYPE_STRUCT;
  else if constexpr (sizeof(T) == 1)
    return std::is_signed_v<T> ? CBR_TYPE_INT8 : CBR_TYPE_UINT8;
  else if constexpr (sizeof(T) == 2)
    return std::is_signed_v<T> ? CBR_TYPE_INT16 : CBR_TYPE_UINT16;
  else if constexpr (sizeof(T) == 4)
    return std::is_signed_v<T> ? CBR_TYPE_INT32 : CBR_TYPE_UINT32;
  else
    return std::is_signed_v<T> ? CBR_TYPE_INT64 : CBR_TYPE_UINT64;
}

// The size of a structure of such fields.
template <class... F>
constexpr std::size_t size_of_fields() {
  std::size_t size = 0, align = 1;
  ((size = (size + alignof(F) - 1) / alignof(F) * alignof(F) + sizeof(F),
    align = alignof(F) > align ? alignof(F) : align),
   ...);
  return (size + align - 1) / align * align;
}

// A type as cbr_signature has it.
template <class T>
constexpr cbr_type described() {
  static_assert(std::is_reference_v<T> || std::is_void_v<T> ||
                    std::is_trivially_copyable_v<T>,
                "C code cannot pass this by value");
  static_assert(!std::is_floating_point_v<T> || one_of<T, float, double>,
                "a long double cannot be passed to a thunk");
  constexpr cbr_type_kind kind = type_kind<T>();
  if constexpr (kind == CBR_TYPE_STRUCT) {
    static_assert(sizeof(T) == fields<T>::size,
                  "cbr::fields of this structure are not its own");
    return {kind, fields<T>::count, fields<T>::types};
  } else {
    if constexpr (std::is_integral_v<T>)
      static_assert(sizeof(T) <= 8, "an integer of more than 64 bits");
    return {kind, 0, nullptr};
  }
}

template <class Signature>
struct described_signature;

template <class R, class... A>
struct described_signature<R(A...)> {
  // One more, since there may be none.
  static constexpr cbr_type arguments[] = {
      described<std::remove_cv_t<A>>()..., {}};

  static cbr_signature make() noexcept {
    cbr_signature made = CBR_SIGNATURE_INIT;
    made.result = described<std::remove_cv_t<R>>();
    made.arguments = arguments;
    made.count = sizeof...(A);
    made.type_tag = type_tag<R(A...)>;
    return made;
  }
};

}  // namespace detail

template <class... F>
struct field_list {
  static constexpr cbr_type types[] = {detail::described<F>()...};
  static constexpr std::uint32_t count = sizeof...(F);
  static constexpr std::size_t size = detail::size_of_fields<F...>();
};

// A plain C function that calls a callable, and may be called for ever (G29).
//
//   cbr::registration callback;
//   cbr::check(callback.bind<int(int)>(registry, "twice", twice));
//   cbr::thunk thunk;
//   cbr::check(thunk.create_or<int(int)>(registry, callback, -1));
//   old_code_set(thunk.function<int(int)>());
//
// No exception may leave a callable that is called by a thunk.
class thunk : public detail::owned<cbr_invalidate_wait> {
 public:
  // Makes a thunk of a token that was bound to a callable of this signature;
  // it returns zeros when nothing is called. As cbr_thunk_create; a thunk that
  // the wrapper held is ended.
  template <class Signature>
  [[nodiscard]] cbr_status create(cbr_registry registry, cbr_token token,
                                  std::uint32_t line = __builtin_LINE(),
                                  const char *file = __builtin_FILE()) {
    return add<Signature>(registry, token, nullptr, line, file);
  }

  // The same of one that returns this when nothing is called.
  template <class Signature>
  [[nodiscard]] cbr_status create_or(
      cbr_registry registry, cbr_token token,
      const typename detail::signature<Signature>::result &otherwise,
      std::uint32_t line = __builtin_LINE(),
      const char *file = __builtin_FILE()) {
    return add<Signature>(registry, token, &otherwise, line, file);
  }

  // Its address, which the wrapper's end leaves as it is; NULL when the thunk
  // is dead. The signature is believed.
  template <class Signature>
  Signature *function() const noexcept {
    return CBR_FUNCTION_CAST_(Signature *, cbr_thunk_function(*this));
  }

  // As cbr_invalidate_wait; CBR_ALREADY also when there is nothing to end.
  cbr_status end(cbr_reason reason = CBR_REASON_ENDED,
                 std::uint64_t timeout_ns = CBR_FOREVER) noexcept {
    return finish(reason, timeout_ns);
  }

 private:
  template <class Signature>
  cbr_status add(cbr_registry registry, cbr_token token,
                 const void *otherwise, std::uint32_t line,
                 const char *file) {
    cbr_signature what = detail::described_signature<Signature>::make();
    what.otherwise = otherwise;
    what.line = line;
    what.file = file;
    cbr_thunk created;
    cbr_status status = cbr_thunk_create(registry, token, &what, &created);
    if (status == CBR_OK) adopt(created);
    return status;
  }
};

// ------------------------------------------------------------ Looking --

// The text of cbr_explain; empty when nothing is known of the handle.
inline std::string explain(cbr_handle handle) {
  std::string text;
  std::size_t needed = 1024;
  cbr_status status;
  do {  // it may have grown meanwhile
    text.resize(needed);
    status = cbr_explain(handle, text.data(), text.size(), &needed);
  } while (status == CBR_E_FULL);
  text.resize(status == CBR_OK ? needed - 1 : 0);
  return text;
}

}  // namespace cbr

#endif
