;; A guest in all but one thing: it imports an interface of WASI, which the host does not have.
;; It exports what a guest exports, so that the import is what is wrong with it.
(component
  (import "wasi:cli/environment@0.2.0" (instance
    (export "get-arguments" (func (result (list string))))
  ))

  (core module $code
    (memory (export "memory") 1)
    ;; Texts cross as a pair of pointer and length. Nobody gets as far as to look at them.
    (func (export "realloc") (param i32 i32 i32 i32) (result i32) i32.const 1024)
    (func (export "describe") (result i32) i32.const 16)
    (func (export "reconcile") (param i32 i32) (result i32) i32.const 16)
  )
  (core instance $code (instantiate $code))

  (type $outcome (variant (case "complete" string) (case "partial" string) (case "failed" string)))
  (func $describe (result string)
    (canon lift (core func $code "describe") (memory $code "memory")))
  (func $reconcile (param "observed" string) (result $outcome)
    (canon lift (core func $code "reconcile")
      (memory $code "memory") (realloc (func $code "realloc"))))

  ;; An interface whose functions use a named type has to be made by a component that
  ;; gets the type and the functions, and exports them together.
  (component $interface
    (type $outcome (variant (case "complete" string) (case "partial" string) (case "failed" string)))
    (import "outcome-type" (type $given (eq $outcome)))
    (import "describe-function" (func $describe (result string)))
    (import "reconcile-function" (func $reconcile (param "observed" string) (result $given)))
    (export $exported "outcome" (type $given))
    (export "describe" (func $describe) (func (result string)))
    (export "reconcile" (func $reconcile) (func (param "observed" string) (result $exported)))
  )
  (instance $reconciler (instantiate $interface
    (with "outcome-type" (type $outcome))
    (with "describe-function" (func $describe))
    (with "reconcile-function" (func $reconcile))
  ))
  (export "innkeeper:guest/reconciler@0.1.0" (instance $reconciler))
)
