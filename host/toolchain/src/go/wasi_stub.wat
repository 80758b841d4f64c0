;; A system without randomness, files and network, and with a clock that only timers move, for guests
;; in Go. It is an adapter for `wasi_snapshot_preview1`: wit-component keeps the functions that a
;; guest imports, and names one that is missing.
;;
;; wit-component allows an adapter neither data nor mutable globals. The state is in the bytes from
;; 4096 to 12288, which Go's linker leaves empty (`wasmMinDataAddr`): at 4096 and 8192 the line that
;; the guest is writing to standard output and standard error (a length, then text), and at 12280 the
;; nanoseconds by which the clock has moved.
(module
  (import "env" "memory" (memory 0))
  (import "innkeeper:guest/log@0.1.0" "write" (func $log (param i32 i32 i32)))

  ;; Logs the line of a buffer, unless it is empty. Only the first line of a crash is an error: the
  ;; host shows the last error as the reason of a trap.
  (func $flush (param $buffer i32)
    (local $level i32) (local $start i32)
    (if (i32.eqz (i32.load (local.get $buffer))) (then (return)))
    (local.set $level (i32.const 1))
    (if (i32.eq (local.get $buffer) (i32.const 8192)) (then
      (local.set $level (i32.const 2))
      (local.set $start (i32.load offset=4 (local.get $buffer)))
      ;; "pani" of `panic: `, "fata" of `fatal error: `.
      (if (i32.or
            (i32.eq (local.get $start) (i32.const 0x696e6170))
            (i32.eq (local.get $start) (i32.const 0x61746166)))
        (then (local.set $level (i32.const 3))))))
    (call $log (local.get $level)
      (i32.add (local.get $buffer) (i32.const 4)) (i32.load (local.get $buffer)))
    (i32.store (local.get $buffer) (i32.const 0)))

  (func $append (param $buffer i32) (param $byte i32)
    (local $length i32)
    (if (i32.eq (local.get $byte) (i32.const 10)) (then (call $flush (local.get $buffer)) (return)))
    ;; A long line is cut before a character: all bytes of one but the first begin with 10 in binary.
    (if (i32.and
          (i32.gt_u (i32.load (local.get $buffer)) (i32.const 4000))
          (i32.ne (i32.and (local.get $byte) (i32.const 0xc0)) (i32.const 0x80)))
      (then (call $flush (local.get $buffer))))
    ;; It is no text.
    (if (i32.eq (i32.load (local.get $buffer)) (i32.const 4010)) (then unreachable))
    (local.set $length (i32.load (local.get $buffer)))
    (i32.store8 offset=4 (i32.add (local.get $buffer) (local.get $length)) (local.get $byte))
    (i32.store (local.get $buffer) (i32.add (local.get $length) (i32.const 1))))

  ;; Whether a descriptor is one of the three standard ones: 0, or 8 (EBADF).
  (func $standard (param $fd i32) (result i32)
    (select (i32.const 0) (i32.const 8) (i32.lt_u (local.get $fd) (i32.const 3))))

  (func (export "fd_write") (param $fd i32) (param $vectors i32) (param $count i32) (param $written i32)
    (result i32)
    (local $buffer i32) (local $at i32) (local $end i32) (local $sum i32)
    (if (i32.gt_u (i32.sub (local.get $fd) (i32.const 1)) (i32.const 1)) (then (return (i32.const 8))))
    (local.set $buffer (i32.mul (local.get $fd) (i32.const 4096)))
    (block $done
      (loop $next
        (br_if $done (i32.eqz (local.get $count)))
        (local.set $at (i32.load (local.get $vectors)))
        (local.set $end (i32.add (local.get $at) (i32.load offset=4 (local.get $vectors))))
        (local.set $sum (i32.add (local.get $sum) (i32.load offset=4 (local.get $vectors))))
        (block $empty
          (loop $byte
            (br_if $empty (i32.ge_u (local.get $at) (local.get $end)))
            (call $append (local.get $buffer) (i32.load8_u (local.get $at)))
            (local.set $at (i32.add (local.get $at) (i32.const 1)))
            (br $byte)))
        (local.set $vectors (i32.add (local.get $vectors) (i32.const 8)))
        (local.set $count (i32.sub (local.get $count) (i32.const 1)))
        (br $next)))
    (i32.store (local.get $written) (local.get $sum))
    (i32.const 0))

  ;; The clock begins at one second, since Go's runtime refuses zero, and stands still but for
  ;; `poll_oneoff`. It is no import: Go's runtime calls this while it allocates the result of an
  ;; import, where no import may be called.
  (func (export "clock_time_get") (param i32 i64 i32) (result i32)
    (i64.store (local.get 2) (i64.add (i64.load (i32.const 12280)) (i64.const 1000000000)))
    (i32.const 0))

  ;; The same numbers in each run, so that each run of a guest gives the same result.
  (func (export "random_get") (param $at i32) (param $length i32) (result i32)
    (block $done
      (loop $next
        (br_if $done (i32.eqz (local.get $length)))
        (local.set $length (i32.sub (local.get $length) (i32.const 1)))
        (i32.store8 (i32.add (local.get $at) (local.get $length))
          (i32.add (i32.mul (local.get $length) (i32.const 167)) (i32.const 43)))
        (br $next)))
    (i32.const 0))

  ;; No arguments, no variables of an environment.
  (func $none (param i32 i32) (result i32)
    (i32.store (local.get 0) (i32.const 0))
    (i32.store (local.get 1) (i32.const 0))
    (i32.const 0))
  (export "args_sizes_get" (func $none))
  (export "environ_sizes_get" (func $none))
  (func $success (param i32 i32) (result i32) (i32.const 0))
  (export "args_get" (func $success))
  (export "environ_get" (func $success))

  ;; The standard descriptors are terminals (character devices), which Go does not poll.
  (func (export "fd_fdstat_get") (param $fd i32) (param $stat i32) (result i32)
    (memory.fill (local.get $stat) (i32.const 0) (i32.const 24))
    (i32.store8 (local.get $stat) (i32.const 2))
    (call $standard (local.get $fd)))
  (func (export "fd_fdstat_set_flags") (param i32 i32) (result i32) (call $standard (local.get 0)))
  ;; EBADF: there are no opened folders.
  (func (export "fd_prestat_get") (param i32 i32) (result i32) (i32.const 8))
  (func (export "sched_yield") (result i32) (i32.const 0))

  (func $exit (export "proc_exit") (param i32)
    (call $flush (i32.const 4096))
    (call $flush (i32.const 8192))
    unreachable)

  ;; Waits for one timer, by moving the clock: `time.Sleep` returns at once.
  (func (export "poll_oneoff") (param $subscription i32) (param $event i32) (param $count i32)
    (param $ready i32) (result i32)
    ;; ENOSYS for descriptors: none can be waited for.
    (if (i32.or (i32.ne (local.get $count) (i32.const 1))
          (i32.load8_u offset=8 (local.get $subscription)))
      (then (return (i32.const 52))))
    (i64.store (i32.const 12280)
      (i64.add (i64.load (i32.const 12280)) (i64.load offset=24 (local.get $subscription))))
    (memory.fill (local.get $event) (i32.const 0) (i32.const 32))
    (i64.store (local.get $event) (i64.load (local.get $subscription)))
    (i32.store (local.get $ready) (i32.const 1))
    (i32.const 0))

  ;; All others: 52 (ENOSYS).
  (func $i (param i32) (result i32) (i32.const 52))
  (func $ii (param i32 i32) (result i32) (i32.const 52))
  (func $iii (param i32 i32 i32) (result i32) (i32.const 52))
  (func $iiii (param i32 i32 i32 i32) (result i32) (i32.const 52))
  (func $iiiii (param i32 i32 i32 i32 i32) (result i32) (i32.const 52))
  (func $iiiiii (param i32 i32 i32 i32 i32 i32) (result i32) (i32.const 52))
  (func $iiiiiii (param i32 i32 i32 i32 i32 i32 i32) (result i32) (i32.const 52))
  (func $il (param i32 i64) (result i32) (i32.const 52))
  (func $ill (param i32 i64 i64) (result i32) (i32.const 52))
  (func $illi (param i32 i64 i64 i32) (result i32) (i32.const 52))
  (func $ilii (param i32 i64 i32 i32) (result i32) (i32.const 52))
  (func $iiili (param i32 i32 i32 i64 i32) (result i32) (i32.const 52))
  (func $iiiilli (param i32 i32 i32 i32 i64 i64 i32) (result i32) (i32.const 52))
  (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32) (i32.const 52))
  (export "clock_res_get" (func $ii))
  (export "fd_advise" (func $illi))
  (export "fd_allocate" (func $ill))
  (export "fd_close" (func $i))
  (export "fd_datasync" (func $i))
  (export "fd_fdstat_set_rights" (func $ill))
  (export "fd_filestat_get" (func $ii))
  (export "fd_filestat_set_size" (func $il))
  (export "fd_filestat_set_times" (func $illi))
  (export "fd_pread" (func $iiili))
  (export "fd_prestat_dir_name" (func $iii))
  (export "fd_pwrite" (func $iiili))
  (export "fd_read" (func $iiii))
  (export "fd_readdir" (func $iiili))
  (export "fd_renumber" (func $ii))
  (export "fd_seek" (func $ilii))
  (export "fd_sync" (func $i))
  (export "fd_tell" (func $ii))
  (export "path_create_directory" (func $iii))
  (export "path_filestat_get" (func $iiiii))
  (export "path_filestat_set_times" (func $path_times))
  (func $path_times (param i32 i32 i32 i32 i64 i64 i32) (result i32) (i32.const 52))
  (export "path_link" (func $iiiiiii))
  (export "path_open" (func $open))
  (export "path_readlink" (func $iiiiii))
  (export "path_remove_directory" (func $iii))
  (export "path_rename" (func $iiiiii))
  (export "path_symlink" (func $iiiii))
  (export "path_unlink_file" (func $iii))
  (export "sock_accept" (func $iii))
  (export "sock_recv" (func $iiiiii))
  (export "sock_send" (func $iiiii))
  (export "sock_shutdown" (func $ii)))
