# Keeps six runs each of two ways to write 800 blocks, in turns: each block made durable, and all at once.
for run in 1 2 3 4 5 6; do
    iowhy -q --save-as before -- dd if=/dev/zero of=data bs=4k count=800 oflag=dsync
    iowhy -q --save-as after -- dd if=/dev/zero of=data bs=4k count=800 conv=fdatasync
done
