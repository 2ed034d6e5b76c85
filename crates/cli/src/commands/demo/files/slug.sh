# Makes the name of a file from a title.
echo "$1"
