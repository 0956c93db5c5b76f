export RLOCK_URL=unix:///tmp/st/s.sock PATH=/work/main/build:$PATH
cd /tmp/st; n=0; bad=0
for i in $(seq $2); do
  l=l$1.$i; rm -f ran.$1
  rlock run $l -- sh -c "until [ -e go.$1 ]; do sleep 0.01; done" & h=$!
  until [ "$(redis-cli -s s.sock exists $l)" = 1 ]; do sleep 0.01; done
  rlock run $l -- touch ran.$1 & w=$!
  sleep 0.3; kill -STOP $w; touch go.$1; wait $h; rm go.$1
  until [ "$(redis-cli -s s.sock exists $l)" = 1 ]; do sleep 0.01; done
  sleep 0.$((RANDOM % 3))$((RANDOM % 10)); kill -KILL $w; wait $w 2>/dev/null
  for k in $(seq 500); do [ "$(redis-cli -s s.sock exists $l)" = 1 ] || break; sleep 0.01; done
  [ ! -e ran.$1 ] || bad=$((bad+1))
done 2>/dev/null
echo "$1: ran $bad of $2"
