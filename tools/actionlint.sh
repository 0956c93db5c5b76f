#!/bin/sh
# Print the path of actionlint, which checks the workflows of GitHub: the one in PATH, or else one that Go builds into FOLDER.
#
#   tools/actionlint.sh FOLDER
#
# Exit status 69: it is not there, and Go is not installed or cannot fetch it.
set -eu

if command -v actionlint; then
	exit 0
fi
folder=$(realpath -m "$1")
if [ ! -x "$folder/actionlint" ]; then
	mkdir -p "$folder"
	command -v go >/dev/null || { echo 'actionlint.sh: neither actionlint nor go is installed' >&2; exit 69; }
	# Use a module cache in this folder, so that it can be removed together with it.
	GOBIN=$folder GOPATH=$folder/go GOFLAGS=-modcacherw \
		timeout 300 go install github.com/rhysd/actionlint/cmd/actionlint@v1.7.7 >"$folder/log" 2>&1 || {
		echo "actionlint.sh: go cannot fetch it: $(tail -n 1 "$folder/log")" >&2
		exit 69
	}
fi
echo "$folder/actionlint"
