# SPDX-License-Identifier: Apache-2.0
#
# Turns the lines of the benchmarks into the tables of the report. Lines are
# separated by tabs:
#   fact   NAME   TEXT
#   case   GROUP  NAME  BASE  MINIMUM  MEDIAN  OVER-RAW  TO-RAW  TO-BASE
#   note   GROUP  TEXT
#   value  NAME   NUMBER
#   spread GROUP  NAME  MEAN  MEDIAN  P99  P99.9
#   rate   GROUP  NAME  ROWS-A-SECOND  CPU-OF-ROW  SHARE  CPU-SHARE
BEGIN { FS = "\t" }

$1 == "fact" { facts[++fact_count] = $2 ": " $3 }
$1 == "note" { notes[$2] = notes[$2] "\n" $3 }
$1 == "value" && !($2 in value) { value[$2] = $3 }
$1 == "spread" || $1 == "rate" {
  # Ours is measured again beside every peer; the first stays.
  if (($2, $3, 4) in number) next
  order[$2, ++size[$2]] = $3
  for (i = 4; i <= NF; i++) number[$2, $3, i] = $i
}
$1 == "case" {
  key = $2 SUBSEP $3
  # Raw and ours are measured again beside every peer; the first stays.
  if (key in median) next
  order[$2, ++size[$2]] = $3
  base[key] = $4
  least[key] = $5
  median[key] = $6
  over[key] = $7
  to_raw[key] = $8
  to_base[key] = $9
}

# Writes a time with three digits and a unit.
function time(nanoseconds) {
  if (nanoseconds < 100) return sprintf("%.2f ns", nanoseconds)
  if (nanoseconds < 10000) return sprintf("%.0f ns", nanoseconds)
  if (nanoseconds < 1000000) return sprintf("%.1f µs", nanoseconds / 1e3)
  if (nanoseconds < 1e9) return sprintf("%.2f ms", nanoseconds / 1e6)
  return sprintf("%.2f s", nanoseconds / 1e9)
}

function rate(count) { return sprintf("%.2f M/s", count / 1e6) }
function percent(part) { return sprintf("%.0f %%", part * 100) }

function factor(ratio) {
  return ratio < 100 ? sprintf("× %.2f", ratio) : sprintf("× %.0f", ratio)
}

# Adds a row to the table; cells are separated by "|".
function row(text) { rows[++row_count] = text }

# Counts characters; the only ones here of two bytes are µ and ×, and those
# of three are ≤ and ≥.
function width(text) {
  gsub(/µ|×|≤|≥/, "_", text)
  return length(text)
}

function pad(text, columns, left,    space) {
  space = sprintf("%" (columns - width(text)) "s", "")
  if (columns == width(text)) space = ""
  return left ? text space : space text
}

# Prints the table; the first row is its head, the first column its names.
function print_table(    i, j, n, cells, widest, line) {
  for (i = 1; i <= row_count; i++) {
    n = split(rows[i], cells, "|")
    for (j = 1; j <= n; j++)
      if (width(cells[j]) > widest[j]) widest[j] = width(cells[j])
  }
  for (i = 1; i <= row_count; i++) {
    n = split(rows[i], cells, "|")
    line = "|"
    for (j = 1; j <= n; j++)
      line = line " " pad(cells[j], widest[j], j == 1) " |"
    print line
    if (i > 1) continue
    line = "|"
    for (j = 1; j <= n; j++) {
      dashes = sprintf("%" (widest[j] + 1) "s", "")
      gsub(/ /, "-", dashes)
      line = line (j == 1 ? ":" dashes : dashes ":") "|"
    }
    print line
  }
  row_count = 0
}

function head(title) { print "\n## " title "\n" }

function print_notes(group,    i, n, lines) {
  n = split(notes[group], lines, "\n")
  for (i = 2; i <= n; i++) print (i == 2 ? "\n" : "") "- " lines[i]
}

# Says whether the last column applies; in the groups on two threads, only to
# the cases that are compared with one thread.
function is_compared(group, name) {
  if (group ~ /threads/) return name ~ /, two threads$/
  return base[group, name] != name
}

# Prints a group: times, and ratios to the raw call and to the base.
function print_group(group, title, against,    i, name, key) {
  if (!size[group]) return
  head(title)
  row("operation|minimum|median|over raw|to raw|" against)
  for (i = 1; i <= size[group]; i++) {
    name = order[group, i]
    key = group SUBSEP name
    row(name "|" time(least[key]) "|" time(median[key]) "|" \
      time(over[key]) "|" factor(to_raw[key]) "|" \
      (is_compared(group, name) ? factor(to_base[key]) : ""))
  }
  print_table()
  print_notes(group)
}

function print_owners(    i, name, key) {
  head("Ending an owner of 100 000 tokens, history off")
  row("operation|minimum|median|median per token")
  for (i = 2; i <= size["owners"]; i++) {
    name = order["owners", i]
    key = "owners" SUBSEP name
    row(name "|" time(least[key]) "|" time(median[key]) "|" \
      time(median[key] / 100000))
  }
  print_table()
  print_notes("owners")
}

# --------------------------------------------------------------- History --

function print_spread(group, title,    i, j, name, text) {
  if (!size[group] && !notes[group]) return
  head(title)
  row("operation|mean|median|p99|p99.9")
  for (i = 1; i <= size[group]; i++) {
    name = text = order[group, i]
    for (j = 4; j <= 7; j++) text = text "|" time(number[group, name, j])
    row(text)
  }
  print_table()
  print_notes(group)
}

function print_ingest(    i, name) {
  if (!size["ingest"]) return
  head("Ingest: rows of calls, committed")
  row("who writes, where|rows|to bare|processor, a row|to bare")
  for (i = 1; i <= size["ingest"]; i++) {
    name = order["ingest", i]
    row(name "|" rate(number["ingest", name, 4]) "|" \
      percent(number["ingest", name, 6]) "|" \
      time(number["ingest", name, 5]) "|" percent(number["ingest", name, 7]))
  }
  print_table()
  print_notes("ingest")
}

# Adds a row for a number, if it was measured.
function value_row(title, name, text) {
  row(title "|" (name in value ? text : ""))
}

function print_recovery() {
  head("Recovery of a full ring of 64 MiB, on the disk")
  row("measure|")
  value_row("records", "recovery records", value["recovery records"])
  value_row("until the registry is open", "recovery opened",
    time(value["recovery opened"]))
  value_row("... records in the database", "recovery rate",
    rate(value["recovery rate"]))
  value_row("... processor time, a record", "recovery cpu",
    time(value["recovery cpu"]))
  value_row("until the first query has answered", "recovery answered",
    time(value["recovery answered"]))
  print_table()
  print_notes("recovery")
}

function print_retention() {
  head("Retention: dropping a table of calls, on the disk")
  row("measure|at most")
  value_row("locked, a million rows", "retention of a million",
    time(value["retention of a million"]))
  value_row("... processor time", "retention cpu of a million",
    time(value["retention cpu of a million"]))
  value_row("longest time that the lock could not be had",
    "retention longest", time(value["retention longest"]))
  print_table()
  print_notes("retention")
}

function print_verify() {
  head("Verifying a history")
  row("by|rows")
  value_row("cbr verify", "verify by cbr verify",
    rate(value["verify by cbr verify"]))
  value_row("verify.sql in the stock shell", "verify by verify.sql",
    rate(value["verify by verify.sql"]))
  print_table()
  print_notes("verify")
}

# ---------------------------------------------------------------- Growth --

function live_name(live) {
  if (live >= 1000000) return live / 1000000 " M"
  return live >= 1000 ? live / 1000 " k" : live
}

function print_growth(    lives, n, i, j, name, text) {
  n = split("10 1000 100000 1000000 10000000", lives, " ")
  head("Growth: cost of an operation beside so many live tokens")
  text = "median, ns"
  for (j = 1; j <= n; j++) text = text "|" live_name(lives[j])
  row(text)
  for (i = 1; i <= size["growth 10"]; i++) {
    name = order["growth 10", i]
    text = name
    for (j = 1; j <= n; j++) {
      text = text "|"
      if (("growth " lives[j], name) in median) {
        text = text sprintf("%.2f", median["growth " lives[j], name])
        largest = lives[j]
      }
    }
    row(text)
  }
  print_table()
  print "\n- few: ten tokens spread among all; what grows there is the" \
    " algorithm, not\n  the cache misses. The verdict compares its minima."
  print "- sequential, random: all tokens in that order."
  print "- bare load: the same order in an array of one cache line per token."
  print_notes("growth")
}

# ---------------------------------------------------------------- Verdict --

# Adds a target to the table of those that must be reached.
function target(name, limit, measured, met) {
  row(name "|" limit "|" measured "|" (met ? "MET" : "MISSED"))
  met ? met_count++ : missed_count++
}

function at_most_over(name, key, limit) {
  if (!(key in over)) return unknown(name, "≤ raw + " limit " ns")
  target(name, "≤ raw + " limit " ns", "raw + " time(over[key]),
    over[key] <= limit)
}

function at_most(name, key, limit) {
  if (!(key in median)) return unknown(name, "≤ " time(limit))
  target(name, "≤ " time(limit), time(median[key]), median[key] <= limit)
}

function at_most_spread(name, operation, column, limit,    key) {
  key = "record" SUBSEP operation SUBSEP column
  if (!(key in number)) return unknown(name, "≤ " limit " ns")
  target(name, "≤ " limit " ns", time(number[key]), number[key] <= limit)
}

function at_most_value(name, key, limit) {
  if (!(key in value)) return unknown(name, "≤ " time(limit))
  target(name, "≤ " time(limit), time(value[key]), value[key] <= limit)
}

function none(name, key) {
  if (!(key in value)) return unknown(name, "0")
  target(name, "0", value[key], value[key] == 0)
}

function at_least_rate(name, measured, limit) {
  if (measured == "") return unknown(name, "≥ " rate(limit))
  target(name, "≥ " rate(limit), rate(measured), measured >= limit)
}

function print_history_verdict(    key, part) {
  at_most_spread("record with time stamp", "record with time stamp", 5, 12)
  at_most_spread("... p99", "record with time stamp", 6, 20)
  none("... events not recorded", "events not recorded")
  key = "ingest" SUBSEP "the library's writer, disk"
  at_least_rate("ingest on one core", number[key, 4], 2e6)
  part = number[key, 6]
  if (part != "") target("... of bare insertions", "≥ 80 %", percent(part),
      part >= 0.8)
  else unknown("... of bare insertions", "≥ 80 %")
  none("... calls without a row", "ingest not written")
  at_least_rate("recovery", value["recovery rate"], 1.5e6)
  at_most_value("... first query answered", "recovery answered", 1e9)
  none("... records missing", "recovery missing")
  at_most_value("retention, a million rows", "retention of a million", 15e6)
  at_most_value("... longest lock", "retention longest", 50e6)
  at_least_rate("verify.sql", value["verify by verify.sql"], 2e6)
}

function at_least_share(name, key, share) {
  if (!(key in to_base)) return unknown(name, "≥ " percent(share))
  target(name, "≥ " percent(share), percent(1 / to_base[key]),
    1 / to_base[key] >= share)
}

function unknown(name, limit) {
  row(name "|" limit "||NOT MEASURED")
  unknown_count++
}

# Compares a peer with ours at both levels, from the peer's own rounds.
function at_most_share(name, peer, parts,    key, level, share) {
  key = "peer calls" SUBSEP peer
  if (!(key in to_base)) return unknown(name, "≤ 1/" parts)
  target(name, "≤ 1/" parts, sprintf("1/%.2f", to_base[key]),
    to_base[key] >= parts)
}

# Compares ours with what a Swift program has otherwise, both by their ratio to
# the base of the group.
function at_most_of(name, group, ours, other, parts,    ratio) {
  ours = group SUBSEP ours
  other = group SUBSEP other
  if (!(ours in to_base) || !(other in to_base))
    return unknown(name, "≤ 1/" parts)
  ratio = to_base[other] / to_base[ours]
  target(name, "≤ 1/" parts, sprintf("1/%.2f", ratio), ratio >= parts)
}

function at_most_growth(name, operation,    from, to, ratio) {
  from = "growth 10" SUBSEP operation
  to = "growth " largest SUBSEP operation
  if (!(from in median) || !(to in median)) return unknown(name, "flat")
  # Minima, since the sizes are measured in processes of their own.
  ratio = least[to] / least[from]
  target(name, "≤ × " flat, factor(ratio), ratio <= flat)
}

function print_verdict(    missing, ns) {
  flat = 1.25
  head("Must reach")
  row("target|must reach|measured|")
  at_most_over("enter+call+leave, history off",
    "calls" SUBSEP "enter+call+leave, history off", 3)
  at_most_over("enter+call+leave, level lifecycle",
    "calls" SUBSEP "enter+call+leave, level lifecycle", 3)
  at_most_share("... of std::weak_ptr lock + call",
    "std::weak_ptr lock + std::function", 3)
  at_most_share("... of GWeakRef", "GWeakRef get + call + unref", 7)
  ns = "threads" SUBSEP "one token, two threads"
  if (ns in to_base)
    target("... on two threads, one token", "≤ × 1.5 of one",
      factor(to_base[ns]), to_base[ns] <= 1.5)
  else unknown("... on two threads, one token", "≤ × 1.5 of one")
  at_most_over("every call recorded and timed",
    "calls" SUBSEP "enter+call+leave, level calls, all recorded", 25)
  missing = value["calls not recorded"]
  if (missing != "")
    target("... of which not recorded", "0", missing, missing == 0)
  else unknown("... of which not recorded", "0")
  at_most("cbr_is_live", "calls" SUBSEP "cbr_is_live", 2.5)
  at_most("emit to 1 handler", "peer emissions" SUBSEP "ours, emit to 1", 12)
  at_most("emit to 10 handlers", "peer emissions" SUBSEP "ours, emit to 10",
    60)
  at_most("post to a queue and deliver",
    "queue" SUBSEP "post and deliver, thread, lifecycle", 150)
  at_most("register+invalidate", "lifetimes" SUBSEP "register+invalidate",
    150)
  at_most("... with destroy",
    "lifetimes" SUBSEP "register+invalidate, with destroy", 1000)
  at_most("an owner of 100 000 tokens",
    "owners" SUBSEP "invalidate an owner of 100 000 tokens", 10e6)
  at_most("... with destroy",
    "owners" SUBSEP "invalidate an owner of 100 000 tokens, with destroy",
    10e6)
  target("memory per live registration", "≤ 128 bytes",
    sprintf("%.1f bytes", value["memory resident"]),
    value["memory resident"] + 0 > 0 && value["memory resident"] <= 128)
  at_most_growth("growth to " live_name(largest) ", enter+leave",
    "enter+leave, few")
  at_most_growth("... cbr_is_live", "cbr_is_live, few")
  at_most_growth("... invalidate+register", "invalidate+register, few")
  at_most_of("a Swift token's call, of weak + closure", "swift calls",
    "token.call, history off", "a weak reference + closure", 4)
  at_most_of("... of an object", "swift calls",
    "... of an object, history off", "a weak reference + closure", 4)
  at_most_of("a Swift signal to 1, of NotificationCenter", "swift emissions",
    "Signal, emit to 1", "NotificationCenter, post to 1", 8)
  at_least_share("throughput of a guarded transfer",
    "guarded" SUBSEP "... guarded, with each call in the history", 0.98)
  print_history_verdict()
  print_table()
  print "\n" met_count + 0 " met, " missed_count + 0 " missed, " \
    unknown_count + 0 " not measured."
  ns = "threads" SUBSEP "bare call, two threads"
  if (to_base[ns] > 1.2)
    print "\nThe bare call took " factor(to_base[ns]) " on two threads:" \
      " something else kept a core\nbusy. Run again on an idle machine."
}

END {
  print "# Benchmarks\n"
  for (i = 1; i <= fact_count; i++) print "- " facts[i]
  print "\nTimes are for one operation. Ratios and differences are medians" \
    " over the rounds, each\nto the same round of the other case."

  print_group("calls", "A guarded call", "to history off")
  print_group("calls fallback", "A guarded call, forced fallback",
    "to history off")
  print_group("threads", "Two threads", "to one thread")
  print_group("threads fallback", "Two threads, forced fallback",
    "to one thread")
  print_group("lifetimes", "Registering and ending, history off",
    "to the first")
  print_owners()

  head("Memory for a live registration, label interned, at 1 000 000")
  row("measure|bytes")
  row("resident memory|" sprintf("%.1f", value["memory resident"]))
  row("cbr_registry_statistics|" \
    sprintf("%.1f", value["memory by statistics"]))
  row("... per slot, used or not|" sprintf("%.1f", value["memory of a slot"]))
  print_table()

  print_growth()
  print_spread("record", "Recording an event")
  print_ingest()
  print_recovery()
  print_retention()
  print_verify()
  print_group("queue", "Queues: a message, posted and delivered", "to the bare call")
  print_group("session", "Sessions: a task of 1 000 data events", "to history off")
  print_group("guarded", "A guarded transfer from a file", "to plain")
  print_group("guarded loopback", "A guarded transfer over loopback",
    "to plain")
  print_group("thunks", "Cookies and thunks: code that cannot be changed",
    "to the bare call")
  print_group("swift calls", "The Swift module: a call",
    "to the token's, history off")
  print_group("swift emissions", "The Swift module: one event", "to the first")
  print_group("peer calls", "Peers: a call", "to ours")
  print_group("peer threads", "Peers: two threads", "to one thread")
  print_group("peer lifetimes", "Peers: making and ending", "to ours")
  print_group("peer emissions", "Peers: emissions", "to ours, to 0")
  print_spread("peer events", "Peers: recording an event")
  if (notes["failures"]) head("Failures")
  print_notes("failures")
  print_verdict()
  exit notes["failures"] != ""
}
