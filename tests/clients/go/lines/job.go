package lines

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

// What tests/clients/copying/job.py says of a transaction and of a member.
const (
	CopyRecords   = 20
	CopySession   = 3 * time.Second
	CopyHeartbeat = 300 * time.Millisecond
)

// Job is what a copying program is told.
type Job struct {
	Bootstrap, Group, ID, Source, Target string
	abortChance                          float64
}

// Aborts tells whether the present transaction is to be aborted for no reason.
func (j Job) Aborts() bool { return rand.Float64() < j.abortChance }

// Copied is what becomes of a value.
func Copied(value []byte) []byte { return append([]byte("copy of "), value...) }

// RunCopy runs the program that `copy` names on the command line until SIGTERM, and exits.
func RunCopy(run func(context.Context, Job) error) {
	if len(os.Args) < 2 || os.Args[1] != "copy" {
		return
	}
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	a := os.Args[2:]
	chance, err := strconv.ParseFloat(a[5], 64)
	if err == nil {
		err = run(ctx, Job{a[0], a[1], a[2], a[3], a[4], chance})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}
