# What should become of a title.
failed=0
check() {
  got=$(sh slug.sh "$2")
  if [ "$got" = "$3" ]; then echo "ok   $1"; else echo "FAIL $1: '$2' became '$got', not '$3'"; failed=1; fi
}
check test_lower_case 'Hello' hello
check test_spaces 'Hello World' hello-world
check test_punctuation 'What? Now!' what-now
exit $failed
