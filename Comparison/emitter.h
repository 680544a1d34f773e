// SPDX-License-Identifier: Apache-2.0
//
// What every library of the matrix is driven by: one signal without arguments,
// and its connections. Each peer implements it in the way that its own manual
// shows (Peers); rows.cpp asks the same of all of them.
#ifndef EMITTER_H
#define EMITTER_H

#include <functional>
#include <memory>
#include <string>

// Thrown where a library has no such thing.
struct not_offered {};

// What disconnecting says.
enum class answer { done, was_gone, silent };

class connection {
 public:
  virtual ~connection() = default;
  // So that the handler's memory can be freed, as far as the library has that.
  virtual answer disconnect() = 0;
  virtual void block() { throw not_offered(); }
  virtual void unblock() { throw not_offered(); }
};

using handler = std::function<void()>;

class emitter {
 public:
  // Destroys the signal; legal inside emit.
  virtual ~emitter() = default;
  virtual std::unique_ptr<connection> connect(const handler &) = 0;
  // Higher priorities are called first.
  virtual std::unique_ptr<connection> connect_at(int priority,
                                                 const handler &) {
    (void)priority;
    throw not_offered();
  }
  virtual std::unique_ptr<connection> connect_once(const handler &) {
    throw not_offered();
  }
  virtual void emit() = 0;
};

std::unique_ptr<emitter> make_emitter();

// Ends the use of the library; what it says of handlers that are still there.
std::string tear_down();

// The library's name and version, as the table names it.
std::string peer_name();

#endif
