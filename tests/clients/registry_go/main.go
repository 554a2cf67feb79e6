// main URL SUBJECT: registers a schema by franz-go's client, looks at it in all ways, deletes another
// one; prints a value in hex, of which Go has only written the header: the caller gives the rest.
package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"

	"github.com/twmb/franz-go/pkg/sr"
)

const schema = `{"type":"record","name":"Order","namespace":"shop","fields":[` +
	`{"name":"id","type":"long"},{"name":"note","type":"string","default":""}]}`

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	ctx, subject := context.Background(), os.Args[2]
	client, err := sr.NewClient(sr.URLs(os.Args[1]))
	check(err)
	made, err := client.CreateSchema(ctx, subject, sr.Schema{Schema: schema})
	check(err)
	found, err := client.LookupSchema(ctx, subject, sr.Schema{Schema: schema})
	check(err)
	byID, err := client.SchemaByID(ctx, made.ID)
	check(err)
	if found.ID != made.ID || byID.Schema != schema || found.Version != 1 {
		check(fmt.Errorf("found %v and %v instead of %v", found, byID, made))
	}
	for _, each := range client.SetCompatibility(ctx, sr.SetCompatibility{Level: sr.CompatFull}, subject) {
		check(each.Err)
	}
	for _, each := range client.Compatibility(ctx, subject) {
		check(each.Err)
		if each.Level != sr.CompatFull {
			check(fmt.Errorf("the level is %v", each.Level))
		}
	}
	result, err := client.CheckCompatibility(ctx, subject, -1, sr.Schema{Schema: `"int"`})
	check(err)
	if result.Is {
		check(errors.New("an int may follow a record"))
	}
	_, err = client.CreateSchema(ctx, subject, sr.Schema{Schema: `"int"`})
	var refused *sr.ResponseError
	if !errors.As(err, &refused) || refused.StatusCode != 409 {
		check(fmt.Errorf("409 was expected: %v", err))
	}
	_, err = client.CreateSchema(ctx, subject+"-gone", sr.Schema{Type: sr.TypeJSON, Schema: `{"type":"string"}`})
	check(err)
	_, err = client.DeleteSubject(ctx, subject+"-gone", sr.SoftDelete)
	check(err)
	_, err = client.DeleteSubject(ctx, subject+"-gone", sr.HardDelete)
	check(err)
	header, err := new(sr.ConfluentHeader).AppendEncode(nil, made.ID, nil)
	check(err)
	fmt.Println(hex.EncodeToString(header))
}
